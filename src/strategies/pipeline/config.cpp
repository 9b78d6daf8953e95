#include "strategies/pipeline/config.h"

#include <fmt/format.h>

#include "collectives/topology.h"
#include "core/error.h"

namespace tutti {

void visit_passes(Visitor& v, PipelineConfig& c,
                  const std::vector<std::string_view>& schedules) {
  v.field("micro_batches", c.micro_batches, kNotNegative,
          "parts of a batch that are in a pipeline at once; 0: four times its nodes (of a single "
          "stage of a hybrid: one), or with task.deterministic its share of the lanes; "
          "asynchronous: whole batches");
  choice(v, "schedule", c.schedule, schedules, "the order of forward and backward passes");
  v.field("recompute", c.recompute,
          "keep only what enters a stage and compute the rest again for the backward pass");
}

void visit_schedule(Visitor& v, PipelineConfig& c) {
  const auto all = words(c.schedule);
  visit_passes(v, c, {all.begin(), all.end()});
  v.field("vertical_sync", c.vertical_sync,
          "asynchronous: every stage computes a batch on the version of the weights that the first "
          "stage had for it, so that its gradient is that of one model");
}

void visit_topology(Visitor& v, std::string& topology, const char* help) {
  v.choice("topology", topology, topologies_of_messages(), help);
}

void visit(Visitor& v, PipelineConfig& c) {
  v.division("stages", c.stages,
             "into how many stages the layers are cut, balanced by their cost, or the layers that "
             "the stages after the first begin with; 0: one for each node of a pipeline, two if "
             "interleaved; auto: as many as are fastest, with replicas to match");
  visit_schedule(v, c);
  v.field("replicas", c.replicas, kAtLeastOne,
          "pipelines side by side, each with a share of the batch: data parallel around model "
          "parallel");
  v.division("copies", c.copies,
             "nodes of each stage, which take micro-batches in turn: one number for all, a list, "
             "or auto: PipeDream's programme chooses stages and copies; 0: one node each");
  visit_topology(v, c.topology, "replicas and copies: how they sum their gradients");
}

void validate_task(const PipelineConfig& config, const TaskConfig& task) {
  if (is_sparse(task.model))
    throw ConfigError("strategy.kind",
                      fmt::format("strategy.kind = \"{}\" spreads the layers of a model, but "
                                  "task.model = \"{}\" has one, of which a batch touches few "
                                  "rows; use parameter_server or hogwild",
                                  word_of(config.kind), task.model.kind()));
  if (task.partition != Partition::kGlobal)
    throw ConfigError("task.partition",
                      fmt::format("strategy.kind = \"{}\" sends whole batches through the "
                                  "layers, but task.partition = \"{}\" deals samples to workers; "
                                  "use \"global\"",
                                  word_of(config.kind), word_of(task.partition)));
  if (config.vertical_sync && config.schedule != PipelineSchedule::kAsynchronous)
    throw ConfigError("strategy.vertical_sync",
                      fmt::format("strategy.vertical_sync is about versions of weights, of which "
                                  "strategy.schedule = \"{}\" has one at a time; leave it out, or "
                                  "use \"asynchronous\"",
                                  word_of(config.schedule)));
  if (config.schedule == PipelineSchedule::kAsynchronous) {
    const auto refuse = [](const char* key, const std::string& setting) {
      throw ConfigError(key, fmt::format("strategy.schedule = \"asynchronous\" updates with the "
                                         "gradient of each whole batch as it comes back, which "
                                         "does not go with {}; choose another schedule",
                                         setting));
    };
    if (task.deterministic) refuse("task.deterministic", "task.deterministic = true");
    if (config.replicas != 1 || config.stages.automatic)
      refuse(config.replicas_key().c_str(), config.replicas_key());
    if (config.micro_batches > 1) refuse("strategy.micro_batches", "strategy.micro_batches");
  }
  if (task.deterministic && config.micro_batches != 0)
    throw ConfigError("strategy.micro_batches",
                      fmt::format("task.deterministic cuts a batch into task.lanes = {}, which are "
                                  "the micro-batches; leave strategy.micro_batches at 0",
                                  task.lanes));
}

namespace {

void validate_copies(const PipelineConfig& config) {
  const auto refuse = [](const char* key, const std::string& setting) {
    throw ConfigError(key, fmt::format("strategy.copies puts stages on several nodes, which does "
                                       "not go with {}; leave one of them out",
                                       setting));
  };
  if (config.schedule != PipelineSchedule::kGpipe && config.schedule != PipelineSchedule::k1f1b)
    refuse("strategy.schedule",
           fmt::format("strategy.schedule = \"{}\"", word_of(config.schedule)));
  if (config.replicas != 1)
    refuse("strategy.replicas", fmt::format("strategy.replicas = {}", config.replicas));
  if (config.stages.automatic) refuse("strategy.stages", "strategy.stages = \"auto\"");
  if (config.copies.automatic && (config.stages.parts > 0 || !config.stages.places.empty()))
    refuse("strategy.stages", "strategy.stages when it is \"auto\" and chooses them too");
}

}  // namespace

void validate(const PipelineConfig& config, const TaskConfig& task, const ClusterConfig& cluster) {
  validate_task(config, task);
  if (config.has_copies()) validate_copies(config);
  if (cluster.workers % config.replicas != 0)
    throw ConfigError("strategy.replicas",
                      fmt::format("strategy.replicas = {} does not divide cluster.workers = {}; "
                                  "every replica needs as many nodes",
                                  config.replicas, cluster.workers));
  if (config.stages.automatic && config.replicas != 1)
    throw ConfigError("strategy.replicas",
                      "strategy.stages = \"auto\" also chooses the replicas; leave "
                      "strategy.replicas at 1, or give the number of stages");
}

}  // namespace tutti

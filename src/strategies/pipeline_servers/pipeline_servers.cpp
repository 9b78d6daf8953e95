#include "strategies/pipeline_servers/pipeline_servers.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "models/stage.h"
#include "strategies/compute.h"
#include "strategies/parameter_layout.h"
#include "strategies/pipeline/model_parallel.h"
#include "strategies/pipeline/stage_costs.h"
#include "strategies/pipeline/trainer.h"
#include "strategies/pipeline_servers/served_update.h"
#include "strategies/pipeline_servers/stage_server.h"

namespace tutti {
namespace {

constexpr const char* kServer = "server";

class PipelineServers : public Strategy {
 public:
  PipelineServers() {
    config_.kind = ModelParallelKind::kPipelineServers;
    config_.servers = 1;
  }

  void visit(Visitor& v) override {
    v.division("stages", config_.stages,
               "into how many stages the layers are cut, balanced by their cost, or the layers "
               "that the stages after the first begin with; 0: one for each worker");
    v.field("servers", config_.servers, kAtLeastOne,
            "nodes that hold the parameters of the stages and update them, each those of "
            "neighbouring stages");
    visit_passes(v, config_, {"sequential", "gpipe", "1f1b", "interleaved"});
    v.division("copies", config_.copies,
               "workers of each stage, which take micro-batches in turn: one number for all, or a "
               "list; 0: one each");
  }

  Taxonomy taxonomy() const override {
    const bool hybrid = config_.has_copies();
    return {.structure = "client-server",
            .parallelism = hybrid ? "hybrid" : "model",
            .optimisation = "centralised",
            .timing = Timing::kSynchronous,
            .pattern = "pipeline, push and pull",
            .data = hybrid ? "shares of each batch for copies" : "all samples pass every stage",
            .stragglers = "everybody waits",
            .communication = "activations; gradients to servers, parameters back",
            .computation = hybrid ? "its layers, for a share of the batch" : "its layers"};
  }

  void fit(ClusterConfig& cluster) const override {
    if (config_.has_copies() || config_.schedule == PipelineSchedule::kInterleaved) return;
    const int64_t stages = !config_.stages.places.empty()
                               ? static_cast<int64_t>(config_.stages.places.size()) + 1
                               : config_.stages.parts;
    if (stages > 0) shrink_cluster(cluster, std::min(cluster.workers, stages));
  }

  Plan plan(const PlanInput& input) const override {
    Plan plan = begin_plan(input, taxonomy(),
                           {.roles = workers_and(input.cluster, kServer, config_.servers),
                            .least_parts = least_parts(config_)});
    check(input);
    place_model(plan, config_, input);
    const Placement& placement = detail_of<PipelinePlan>(plan).placement;
    if (std::ssize(placement.stages) < config_.servers)
      throw ConfigError("strategy.servers",
                        fmt::format("strategy.servers = {} is more than the {} stages whose "
                                    "parameters they hold; lower it, or raise cluster.workers",
                                    config_.servers, placement.stages.size()));
    const AtLargestBatch largest(input);
    for (size_t server = 0; server < static_cast<size_t>(config_.servers); ++server)
      plan_server(plan, largest.input(), placement, server);
    plan.in_words += fmt::format(", {} server{}", config_.servers, config_.servers > 1 ? "s" : "");
    plan.reasons.emplace_back(
        "a lost node ends the run: a stage or its parameters would be missing");
    return plan;
  }

  NodeResult run(Context& context) const override {
    const auto& [config, placement] = detail_of<PipelinePlan>(context.plan);
    const Rank me = context.node.endpoint().rank();
    const bool serves = me >= context.plan.workers;
    // Servers only count the samples of a batch.
    Batches batches = serves ? Batches(context.data.splits.train, context.task.partition, 1,
                                       context.task.seed, false)
                             : deal_batches(context, 1);
    context.node.membership().end_waits_on_any_loss(true);
    if (serves) {
      StageServer server(context, placement, config);
      run_steps(context, batches, server);
      server.finish_sends();
      return {.members = {0}};
    }
    std::vector<Rank> servers;
    for (int64_t server = 0; server < config.servers; ++server)
      servers.push_back(static_cast<Rank>(context.plan.workers + server));
    PipelineTrainer trainer(context, placement, config, {make_served_update, servers});
    run_steps(context, batches, trainer);
    trainer.gather();
    return {.members = {0}};  // who has the whole model
  }

 private:
  void check(const PlanInput& input) const {
    const auto refuse = [](const char* key) {
      throw ConfigError(key, fmt::format("{} = \"auto\" chooses between ways to sum gradients "
                                         "without servers; give a number, or use strategy.kind = "
                                         "\"pipeline\"",
                                         key));
    };
    if (config_.stages.automatic) refuse("strategy.stages");
    if (config_.copies.automatic) refuse("strategy.copies");
    validate(config_, input.task, input.cluster);
    check_optimizer(config_, input.optimizer);
  }

  // What a server has for its stages: parameters, the state of the optimizer, and the gradient of
  // each worker that computes them.
  void plan_server(Plan& plan, const PlanInput& input, const Placement& placement,
                   size_t server) const {
    NodePlan& node = plan.nodes[static_cast<size_t>(plan.workers) + server];
    set_no_model(node);
    StepCost cost;
    double bytes = 0;
    const Range stages = stages_on_server(placement, config_, server);
    for (size_t s = stages.begin; s < stages.end; ++s) {
      node.layers.push_back(placement.stages[s]);
      const Architecture stage = stage_of(input.architecture, placement.stages[s]);
      const auto values = static_cast<double>(stage.parameter_count);
      const auto holders = static_cast<double>(placement.holders(s, 0).size());
      const double rounded = input.task.deterministic ? 1 : 0;
      cost.bytes_sent += holders * values * sizeof(float);
      cost.messages += holders;
      bytes += values * (sizeof(float) * (1 + rounded) +
                         holders * static_cast<double>(element_bytes(input))) +
               sizeof(float) * optimizer_cost(input.optimizer, layout_of(stage)).values;
    }
    set_traffic(node, cost);
    node.memory_bytes = bytes;
  }

  PipelineConfig config_;
};

}  // namespace

std::vector<Variant> pipeline_servers_variants() { return {{"pipeline-servers", {}}}; }

std::unique_ptr<Strategy> make_pipeline_servers() { return std::make_unique<PipelineServers>(); }

}  // namespace tutti

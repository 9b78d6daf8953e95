#include "strategies/pipeline/pipeline.h"

#include <fmt/format.h>

#include "core/error.h"
#include "strategies/pipeline/explain.h"
#include "strategies/pipeline/stage_costs.h"
#include "strategies/pipeline/trainer.h"
#include "strategies/synchronous.h"

namespace tutti {
namespace {

class Pipeline : public Strategy {
 public:
  void visit(Visitor& v) override { tutti::visit(v, config_); }

  void validate(const TaskConfig& task, const ClusterConfig& cluster) const override {
    tutti::validate(config_, task, cluster);
  }

  void validate_optimizer(const OptimizerConfig& optimizer) const override {
    if (optimizer.clip_norm > 0)
      throw ConfigError(
          "optimizer.clip_norm",
          fmt::format("optimizer.clip_norm = {} needs the norm of the whole gradient, "
                      "of which a stage of strategy.kind = \"pipeline\" has a part; "
                      "set it to 0",
                      optimizer.clip_norm));
  }

  void validate_plan(const Plan& plan) const override { place_stages(config_, plan); }

  std::vector<std::string> explain(const Plan& plan) const override {
    return explain_pipeline(config_, plan);
  }

  Taxonomy taxonomy() const override {
    const bool hybrid = config_.replicas > 1 || config_.stages.automatic;
    return {"peer-to-peer", hybrid ? "hybrid" : "model", "centralised",
            config_.schedule == "asynchronous" ? "bounded" : "synchronous",
            hybrid ? "pipeline, all-reduce" : "pipeline"};
  }

  std::string equivalence(const TaskConfig& task) const override {
    return config_.schedule == "asynchronous" ? "" : synchronous_class(task);
  }

  void fit(ClusterConfig& cluster) const override {
    const int64_t stages = !config_.stages.places.empty()
                               ? static_cast<int64_t>(config_.stages.places.size()) + 1
                               : config_.stages.parts;
    int64_t nodes = cluster.workers / config_.replicas * config_.replicas;
    if (stages > 0 && config_.schedule != "interleaved")
      nodes = std::min(nodes, stages * config_.replicas);
    shrink_cluster(cluster, nodes);
  }

  std::vector<Range> layers_of(const Plan& plan, Rank worker) const override {
    const Placement placement = place_stages(config_, plan);
    std::vector<Range> layers;
    for (size_t s = placement.node_of(worker); s < placement.stages.size(); s += placement.nodes)
      layers.push_back(placement.stages[s]);
    return layers;
  }

  StepCost step_cost(const Plan& plan) const override {
    const Placement placement = place_stages(config_, plan);
    StepCost most;
    for (Rank rank = 0; rank < plan.cluster.workers; ++rank) {
      const StepCost cost = node_traffic(placement, config_, plan, rank);
      if (cost.bytes_sent >= most.bytes_sent) most = cost;
    }
    return most;
  }

  double memory_bytes(const Plan& plan) const override {
    const Placement placement = place_stages(config_, plan);
    double most = 0;
    for (Rank rank = 0; rank < plan.cluster.workers; ++rank)
      most = std::max(most, node_memory(placement, config_, plan, rank));
    return most;
  }

  void run(Context& context) const override {
    const Placement placement = place_stages(
        config_, {context.task, context.cluster, context.optimizer, context.model.architecture()});
    // One order of samples for all: the stages share a batch, and replicas take parts of it.
    Batches batches(context.data.splits.train, context.task.partition, 1, context.task.seed,
                    !context.node.clock().cost_only());
    PipelineTrainer trainer(context, placement, config_);
    context.node.membership().end_waits_on_any_loss(true);
    run_steps(context, batches, trainer);
    trainer.gather();
    context.members = {0};  // who has the whole model
  }

 private:
  PipelineConfig config_;
};

}  // namespace

std::vector<Variant> pipeline_variants() {
  std::vector<Variant> variants;
  for (const ScheduleEntry& entry : pipeline_schedules()) {
    variants.push_back(
        {fmt::format("pipeline-{}", entry.name), {fmt::format("schedule=\"{}\"", entry.name)}});
    // Whole batches, whatever the job says of parts of them.
    if (entry.name == "asynchronous") variants.back().settings.push_back("micro_batches=0");
  }
  variants.push_back({"pipeline-auto", {"stages=auto", "replicas=1"}});
  return variants;
}

std::unique_ptr<Strategy> make_pipeline() { return std::make_unique<Pipeline>(); }

}  // namespace tutti

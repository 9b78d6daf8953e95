#include "strategies/pipeline/pipeline.h"

#include <fmt/format.h>

#include "strategies/pipeline/model_parallel.h"
#include "strategies/pipeline/schedule.h"

namespace tutti {
namespace {

class Pipeline : public ModelParallel {
 public:
  void visit(Visitor& v) override { tutti::visit(v, config_); }

  Taxonomy taxonomy() const override {
    const bool hybrid = config_.replicas > 1 || config_.stages.automatic || config_.has_copies();
    const bool synchronous = config_.schedule != PipelineSchedule::kAsynchronous;
    return {.structure = "peer-to-peer",
            .parallelism = hybrid ? "hybrid" : "model",
            .optimisation = "centralised",
            .timing = synchronous ? Timing::kSynchronous : Timing::kBounded,
            .pattern = hybrid ? "pipeline, all-reduce" : "pipeline",
            .data = hybrid ? "shares of each batch for copies" : "all samples pass every node",
            .stragglers = "everybody waits",
            .communication = "activations and their gradients",
            .computation = hybrid ? "its layers, for a share of the batch" : "its layers"};
  }

  void fit(ClusterConfig& cluster) const override {
    const int64_t stages = !config_.stages.places.empty()
                               ? static_cast<int64_t>(config_.stages.places.size()) + 1
                               : config_.stages.parts;
    int64_t nodes = cluster.workers / config_.replicas * config_.replicas;
    if (stages > 0 && config_.schedule != PipelineSchedule::kInterleaved)
      nodes = std::min(nodes, stages * config_.replicas);
    shrink_cluster(cluster, nodes);
  }

 protected:
  void check(const TaskConfig& task, const ClusterConfig& cluster) const override {
    tutti::validate(config_, task, cluster);
  }
};

}  // namespace

std::vector<Variant> pipeline_variants() {
  std::vector<Variant> variants;
  for (const ScheduleEntry& entry : pipeline_schedules()) {
    const std::string_view name = word_of(entry.schedule);
    variants.push_back({fmt::format("pipeline-{}", name), {fmt::format("schedule=\"{}\"", name)}});
    // Whole batches, whatever the job says of parts of them.
    if (entry.schedule == PipelineSchedule::kAsynchronous)
      variants.back().settings.push_back("micro_batches=0");
  }
  variants.push_back({"pipeline-auto", {"stages=auto", "replicas=1"}});
  return variants;
}

std::unique_ptr<Strategy> make_pipeline() { return std::make_unique<Pipeline>(); }

}  // namespace tutti

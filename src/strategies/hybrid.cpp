// Narayanan et al., "Efficient large-scale language model training on GPU clusters using
// Megatron-LM" (SC 2021): copies of the model, each cut into stages, each stage split into shards.
#include "strategies/hybrid.h"

#include <fmt/format.h>

#include "core/error.h"
#include "strategies/pipeline/model_parallel.h"

namespace tutti {
namespace {

void refuse_places(const char* key, const Division& division) {
  if (!division.places.empty())
    throw ConfigError(key, fmt::format("{} is a number or \"auto\", not a list", key));
}

// A size that the planner chooses is 0.
int64_t size_of(const Division& division) { return division.automatic ? 0 : division.parts; }

class Hybrid : public ModelParallel {
 public:
  Hybrid() {
    config_.kind = ModelParallelKind::kHybrid;
    config_.stages.automatic = true;
    data_.automatic = true;
    shards_.automatic = true;
  }

  void visit(Visitor& v) override {
    v.division("data", data_,
               "copies of the model, each with a share of the batch; auto: as many as are fastest");
    v.division("stages", config_.stages,
               "into how many stages the layers of a copy are cut, or the layers that the stages "
               "after the first begin with; auto: as many as are fastest");
    v.division("shards", shards_,
               "nodes that share each layer of a stage; auto: as many as are fastest");
    visit_schedule(v, config_);
    visit_topology(v, config_.topology, "how copies sum their gradients");
  }

  Taxonomy taxonomy() const override {
    const bool synchronous = config_.schedule != PipelineSchedule::kAsynchronous;
    return {.structure = "peer-to-peer",
            .parallelism = "hybrid",
            .optimisation = "centralised",
            .timing = synchronous ? Timing::kSynchronous : Timing::kBounded,
            .pattern = "pipeline, all-reduce",
            .data = "shares of each batch for copies",
            .stragglers = "everybody waits",
            .communication = "activations, their gradients, sums of gradients",
            .computation = "its part of its layers, for a share of the batch"};
  }

  // As many nodes as are a multiple of what is given.
  void fit(ClusterConfig& cluster) const override {
    const int64_t stages = !config_.stages.places.empty()
                               ? static_cast<int64_t>(config_.stages.places.size()) + 1
                               : size_of(config_.stages);
    const bool interleaved = config_.schedule == PipelineSchedule::kInterleaved;
    int64_t given = interleaved ? 1 : std::max<int64_t>(1, stages);
    for (const Division* size : {&data_, &shards_}) given *= std::max<int64_t>(1, size_of(*size));
    if (given <= cluster.workers) shrink_cluster(cluster, cluster.workers / given * given);
  }

 protected:
  void check(const TaskConfig& task, const ClusterConfig& cluster) const override {
    refuse_places("strategy.data", data_);
    refuse_places("strategy.shards", shards_);
    validate_task(resolved(cluster), task);
  }

  // What is not given for stages follows from the other two sizes.
  PipelineConfig resolved(const ClusterConfig&) const override {
    PipelineConfig config = config_;
    config.stages.automatic = false;
    config.replicas = size_of(data_);
    config.shards = size_of(shards_);
    return config;
  }

 private:
  Division data_, shards_;
};

}  // namespace

std::vector<Variant> hybrid_variants() {
  return {{"hybrid-auto", {"data=auto", "stages=auto", "shards=auto"}}};
}

std::unique_ptr<Strategy> make_hybrid() { return std::make_unique<Hybrid>(); }

}  // namespace tutti

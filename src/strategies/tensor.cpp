// Shoeybi et al., "Megatron-LM: training multi-billion parameter language models using model
// parallelism" (2019): one stage, no replicas, all nodes its shards, and a batch in one piece.
#include "strategies/tensor.h"

#include <fmt/format.h>

#include "collectives/topology.h"
#include "core/error.h"
#include "strategies/pipeline/model_parallel.h"

namespace tutti {
namespace {

class TensorParallel : public ModelParallel {
 public:
  TensorParallel() {
    config_.kind = ModelParallelKind::kTensor;
    config_.shards = 0;
  }

  void visit(Visitor& v) override {
    v.field("shards", config_.shards, kNotNegative, "nodes that share each layer; 0: all workers");
    visit_topology(v, config_.shard_topology, "how they sum within layers");
  }

  Taxonomy taxonomy() const override {
    return {.structure = "peer-to-peer",
            .parallelism = "model",
            .optimisation = "centralised",
            .timing = Timing::kSynchronous,
            .pattern = topology(config_.shard_topology).pattern,
            .data = "all samples on every node",
            .stragglers = "everybody waits",
            .communication = "sums of activations within layers",
            .computation = "its part of each layer"};
  }

  void fit(ClusterConfig& cluster) const override {
    if (config_.shards > 0) shrink_cluster(cluster, std::min(cluster.workers, config_.shards));
  }

 protected:
  void check(const TaskConfig& task, const ClusterConfig& cluster) const override {
    validate_task(config_, task);
    if (config_.shards != 0 && config_.shards != cluster.workers)
      throw ConfigError("strategy.shards",
                        fmt::format("strategy.shards = {} leaves some of cluster.workers = {} out "
                                    "or asks for more; set it to 0 for all, or use "
                                    "strategy.kind = \"hybrid\" for several groups of shards",
                                    config_.shards, cluster.workers));
  }

  PipelineConfig resolved(const ClusterConfig& cluster) const override {
    PipelineConfig config = config_;
    config.shards = cluster.workers;
    config.micro_batches = 1;
    return config;
  }
};

}  // namespace

std::vector<Variant> tensor_variants() { return {{"tensor", {"shards=0"}}}; }

std::unique_ptr<Strategy> make_tensor() { return std::make_unique<TensorParallel>(); }

}  // namespace tutti

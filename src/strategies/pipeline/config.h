// [strategy] kind = "pipeline", and what "tensor" and "hybrid" make of their own settings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "strategies/pipeline/schedule.h"
#include "strategies/strategy.h"

namespace tutti {

// Whose settings they are.
enum class ModelParallelKind { kPipeline, kTensor, kHybrid, kPipelineServers };
constexpr auto words(ModelParallelKind) {
  return WordList<4>{"pipeline", "tensor", "hybrid", "pipeline_servers"};
}

struct PipelineConfig {
  ModelParallelKind kind = ModelParallelKind::kPipeline;
  Division stages;            // 0 parts: one for each node of a pipeline, two if interleaved
  int64_t micro_batches = 0;  // of a pipeline; 0: four times its nodes, or the lanes
  PipelineSchedule schedule = PipelineSchedule::k1f1b;
  bool recompute = false;         // forward passes again before going back, keeping inputs alone
  bool vertical_sync = false;     // asynchronous: all stages see the first one's version
  int64_t replicas = 1;           // pipelines side by side, each on a share of the batch; 0: auto
  Division copies;                // nodes of each stage of a pipeline; 0 parts: one
  std::string topology = "ring";  // how they sum their gradients
  int64_t shards = 1;             // nodes that share the layers of a stage; 0: auto
  std::string shard_topology = "butterfly";  // how they sum within layers
  int64_t servers = 0;  // nodes that update the parameters of the stages; 0: these do it themselves

  // The planner chooses at least one of the three sizes.
  bool is_automatic() const { return stages.automatic || replicas == 0 || shards == 0; }
  bool has_copies() const { return copies.automatic || copies.parts > 1 || !copies.places.empty(); }
  std::string replicas_key() const {
    if (servers > 0) return "strategy.copies";
    return kind == ModelParallelKind::kHybrid ? "strategy.data" : "strategy.replicas";
  }
};

void visit(Visitor& visitor, PipelineConfig& config);
// Throws ConfigError naming the settings that contradict each other.
void validate(const PipelineConfig& config, const TaskConfig& task, const ClusterConfig& cluster);
// What pipeline, tensor and hybrid have in common of that.
void validate_task(const PipelineConfig& config, const TaskConfig& task);

// The settings of passes, schedules and topologies, which others have as well.
void visit_passes(Visitor& visitor, PipelineConfig& config,
                  const std::vector<std::string_view>& schedules);
void visit_schedule(Visitor& visitor, PipelineConfig& config);
void visit_topology(Visitor& visitor, std::string& topology, const char* help);

}  // namespace tutti

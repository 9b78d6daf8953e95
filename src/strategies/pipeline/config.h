// [strategy] kind = "pipeline"
#pragma once

#include <string>

#include "strategies/strategy.h"

namespace tutti {

struct PipelineConfig {
  Division stages;            // 0 parts: one for each node of a pipeline, two if interleaved
  int64_t micro_batches = 0;  // of a pipeline; 0: four times its nodes, or the lanes
  std::string schedule = "1f1b";
  bool recompute = false;         // forward passes again before going back, keeping inputs alone
  bool vertical_sync = false;     // asynchronous: all stages see the first one's version
  int64_t replicas = 1;           // pipelines side by side, each on a share of the batch
  std::string topology = "ring";  // how they sum their gradients
};

void visit(Visitor& visitor, PipelineConfig& config);
// Throws ConfigError naming the settings that contradict each other.
void validate(const PipelineConfig& config, const TaskConfig& task, const ClusterConfig& cluster);

}  // namespace tutti

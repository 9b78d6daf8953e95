// What the sums within layers cost, where a stage is spread over shards.
#pragma once

#include <vector>

#include "collectives/topology.h"
#include "models/architecture.h"
#include "strategies/pipeline/placement.h"

namespace tutti {

// The part of stage `stage` that a shard computes.
Architecture part_of_stage(const Placement& placement, const Architecture& whole, size_t stage,
                           size_t shard);

// Over how many values the shards sum, one after the other, in a pass of so many samples. With
// split scores the forward pass ends with what the loss takes.
std::vector<size_t> forward_exchanges(const Architecture& shard, size_t samples);
std::vector<size_t> backward_exchanges(const Architecture& shard, size_t samples);

// How long these sums take.
double exchange_seconds(const Placement& placement, const PipelineConfig& config,
                        const ClusterConfig& cluster, const std::vector<size_t>& exchanges);
// What one shard sends in the passes of a micro-batch.
Volume exchange_volume(const Placement& placement, const PipelineConfig& config,
                       const Architecture& shard, size_t samples);

}  // namespace tutti

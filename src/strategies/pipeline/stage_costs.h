// What stages cost on the nodes that they are placed on: time, memory and bytes, from the model's
// layers and the cluster's description. What planning, prediction and explanation have in common.
#pragma once

#include <vector>

#include "models/architecture.h"
#include "strategies/pipeline/placement.h"
#include "strategies/pipeline/planner.h"

namespace tutti {

// Of a node's link, as the cluster is described, when this many neighbours in rank send at once:
// those of a host share it. Those of a real one are not known and taken as all equal.
double shared_bandwidth(const ClusterConfig& cluster, size_t senders);

// Of a value of a gradient that is sent.
size_t element_bytes(const PlanInput& input);

// The samples of the largest micro-batch.
double micro_batch_samples(const PlanInput& input, size_t micro_batches);

// Forward, backward and passing on of a micro-batch, on the slowest of the stage's nodes.
StageTimes times_of(const Placement& placement, const PipelineConfig& config,
                    const PlanInput& input, size_t stage);
// Between two updates: the passes of a batch, the sum over replicas, and the update.
double step_seconds(const Placement& placement, const PipelineConfig& config,
                    const PlanInput& input);
// Of a step, the share in which an average node does not compute.
double bubble_share(const Placement& placement, const PipelineConfig& config,
                    const PlanInput& input);

// Parameters, gradients and their sum, optimizer, activations of the micro-batches under way, and
// what waits at the stage's borders.
double stage_memory(const PipelineConfig& config, const PlanInput& input, const Architecture& stage,
                    size_t in_flight, double samples);
// Of the stages of a node. Rank 0 also gathers the parameters of all, at the end.
double node_memory(const Placement& placement, const PipelineConfig& config, const PlanInput& input,
                   Rank rank);
// What a node sends for a batch.
StepCost node_traffic(const Placement& placement, const PipelineConfig& config,
                      const PlanInput& input, Rank rank);

}  // namespace tutti

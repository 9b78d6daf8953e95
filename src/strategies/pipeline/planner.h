// Where to cut a model: dynamic programmes over the chain of its pieces.
//
// A pipeline is as fast as its slowest stage, so the largest cost of a stage is made as small as
// possible.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/range.h"

namespace tutti {

// What a part of the chain costs as stage `stage`; infinity: it is not possible there.
using StageCost = std::function<double(size_t stage, Range pieces)>;

struct ChainPartition {
  std::vector<Range> stages;  // consecutive pieces, none empty
  double bottleneck = 0;      // the largest cost of a stage
};

// Cuts `pieces` pieces into `stages` stages. Among the ways with the smallest largest cost, the one
// with the smallest sum of costs. Nothing when no way is possible.
std::optional<ChainPartition> partition_chain(size_t pieces, size_t stages, const StageCost& cost);

// What lies between two neighbouring cuts, for one micro-batch on a node.
struct PlanPiece {
  double compute_s = 0;  // forward and backward
  double parameter_bytes = 0;
  double output_bytes = 0;  // passed on, and as many back
  double pass_s = 0;        // added once, if a stage begins here
};

struct ReplicatedStage {
  Range pieces;
  size_t replicas = 1;
};
struct ReplicatedPlan {
  std::vector<ReplicatedStage> stages;
  double bottleneck_s = 0;  // time between two micro-batches
};

// When the copies of a stage sum the gradients of their parameters: while other micro-batches are
// computed, which go on with old weights, or when all of a batch are through.
enum class Synchronise { kMeanwhile, kAfterBatch };

// Narayanan et al., "PipeDream" (SOSP 2019), section 3.1: cuts the chain into stages, gives each a
// number of replicas and uses at most `workers` equal nodes in all. A stage of r replicas takes a
// micro-batch every max(compute, synchronise) / r, where synchronising its parameters moves
// 2 (r - 1) / r of their bytes; what passes a cut takes its bytes twice. `bandwidth` is in bytes
// per second. After a batch, compute / r + synchronise: then `parameter_bytes` is what falls to one
// of its micro-batches.
ReplicatedPlan plan_replicated(std::span<const PlanPiece> pieces, size_t workers, double bandwidth,
                               Synchronise when = Synchronise::kMeanwhile);
// The same figure for a given plan: what plan_replicated() makes as small as possible.
double bottleneck_of(std::span<const PlanPiece> pieces, std::span<const ReplicatedStage> stages,
                     double bandwidth, Synchronise when = Synchronise::kMeanwhile);

}  // namespace tutti

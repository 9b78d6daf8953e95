// Plans strategy.copies = "auto": which stages to cut a model into, and how many nodes each gets.
#pragma once

#include "strategies/pipeline/placement.h"

namespace tutti {

// Gives `placement`, whose nodes and micro-batches are set, the stages and copies with the shortest
// step among those that fit the memory, by the same step_seconds() that `tutti check` shows. A
// small number of ways is tried exhaustively. Otherwise a local search starts from PipeDream's
// programme and from other plans.
Placement plan_copies(const PipelineConfig& config, const PlanInput& input, Placement placement);

}  // namespace tutti

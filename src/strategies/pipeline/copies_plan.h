// Which stages to cut a model into, and how many nodes each of them has: strategy.copies = "auto".
#pragma once

#include "strategies/pipeline/placement.h"

namespace tutti {

// Gives `placement`, whose nodes and micro-batches are chosen, the stages and copies with the
// shortest step of those that fit the memory: the same step_seconds() that `tutti check` shows. All
// ways are tried where they are few; else PipeDream's programme and others begin a local search.
Placement plan_copies(const PipelineConfig& config, const Plan& plan, Placement placement);

}  // namespace tutti

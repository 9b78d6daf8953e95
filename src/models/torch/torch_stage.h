// The stage that computes: runs its layers by LibTorch over its part of the whole model's memory,
// or as a shard over memory of its own.
#pragma once

#include <memory>

#include "models/stage.h"

namespace tutti {

std::unique_ptr<StageModel> make_torch_stage(const Architecture& whole, Range layers,
                                             const ModelMemory& memory, uint64_t seed);
// Starts with its part of the initial parameters.
std::unique_ptr<StageModel> make_torch_shard(const Architecture& shard, uint64_t seed,
                                             ShardGroup& group);

}  // namespace tutti

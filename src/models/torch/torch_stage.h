// The stage that computes: runs its layers, or a shard of them, by LibTorch over the caller's
// memory.
#pragma once

#include <memory>

#include "models/stage.h"

namespace tutti {

// How many threads the kernels use that this one calls.
void use_threads(int count);

// `group`: of a shard, otherwise nullptr.
std::unique_ptr<StageModel> make_torch_part(const Architecture& part, const ModelMemory& memory,
                                            const ModelOptions& options, ShardGroup* group);

}  // namespace tutti

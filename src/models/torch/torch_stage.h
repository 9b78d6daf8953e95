// The stage that computes: runs its layers by LibTorch over its part of the whole model's memory.
#pragma once

#include <memory>

#include "models/stage.h"

namespace tutti {

std::unique_ptr<StageModel> make_torch_stage(const Architecture& whole, Range layers,
                                             const ModelMemory& memory, uint64_t seed);

}  // namespace tutti

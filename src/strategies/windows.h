// Memory that the nodes of one host share, opened as a plan says.
#pragma once

#include <span>

#include "core/log.h"
#include "fabric/node.h"
#include "strategies/plan.h"

namespace tutti {

// Without `gradients` those of the model lie elsewhere.
struct SharedMemory {
  Window* window = nullptr;
  std::span<float> gradients;
};

// Opens the windows of all nodes at once, before there is a model, whose gradients may lie there.
// Throws FabricError when the strategy cannot do without and they cannot be had.
SharedMemory open_windows(Node& node, const Plan& plan, Log& log);

}  // namespace tutti

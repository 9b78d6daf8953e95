// Hogwild!: all workers of a host update one vector of parameters in shared memory, without locks
// (Niu, Recht, Re and Wright, "Hogwild!: a lock-free approach to parallelizing stochastic gradient
// descent", NIPS 2011).
//
// Reads and writes of a single parameter are atomic and relaxed, nothing more: a worker may see
// half of another's update, and of two that write a parameter at once one may be lost. For dense
// models too, where the paper has no theorem: losses are then what it costs.
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace tutti {

std::unique_ptr<Strategy> make_hogwild();
std::vector<Variant> hogwild_variants();

}  // namespace tutti

// Tensor parallelism: every layer over all nodes, which sum within each block.
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace tutti {

std::unique_ptr<Strategy> make_tensor();
std::vector<Variant> tensor_variants();

}  // namespace tutti

// Data, pipeline and tensor parallelism at once.
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace tutti {

std::unique_ptr<Strategy> make_hybrid();
std::vector<Variant> hybrid_variants();

}  // namespace tutti

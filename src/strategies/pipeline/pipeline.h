// Pipelines: the layers of a model over nodes, batches in parts one behind the other.
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace tutti {

std::unique_ptr<Strategy> make_pipeline();
std::vector<Variant> pipeline_variants();  // one for each schedule, and a hybrid

}  // namespace tutti

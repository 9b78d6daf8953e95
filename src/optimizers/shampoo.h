// What Shampoo holds and computes, which depends on shapes and not on the number of values alone.
#pragma once

#include "optimizers/optimizer.h"

namespace tutti {

OptimizerCost shampoo_cost(const OptimizerConfig& config, const Layout& layout);

}  // namespace tutti

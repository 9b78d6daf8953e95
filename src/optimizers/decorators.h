// What is put around an update rule as the settings of all of them say.
#pragma once

#include <memory>

#include "optimizers/optimizer.h"

namespace tutti {

// Steps by g + decay * x in place of g.
std::unique_ptr<Optimizer> with_weight_decay(std::unique_ptr<Optimizer> inner, double decay,
                                             size_t size);
// Steps by g scaled down to the norm `most` where it has a larger one.
std::unique_ptr<Optimizer> with_clipping(std::unique_ptr<Optimizer> inner, double most,
                                         size_t size);

}  // namespace tutti

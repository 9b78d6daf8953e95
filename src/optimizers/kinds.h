// The factories behind optimizer_catalog(), one per file, and the decorators around them.
#pragma once

#include <memory>

#include "optimizers/optimizer.h"

namespace tutti {

std::unique_ptr<Optimizer> make_sgd(const OptimizerConfig& config, const Layout& layout);
std::unique_ptr<Optimizer> make_momentum(const OptimizerConfig& config, const Layout& layout);
std::unique_ptr<Optimizer> make_nesterov(const OptimizerConfig& config, const Layout& layout);
std::unique_ptr<Optimizer> make_adagrad(const OptimizerConfig& config, const Layout& layout);
std::unique_ptr<Optimizer> make_rmsprop(const OptimizerConfig& config, const Layout& layout);
std::unique_ptr<Optimizer> make_adam(const OptimizerConfig& config, const Layout& layout);
std::unique_ptr<Optimizer> make_adamw(const OptimizerConfig& config, const Layout& layout);
std::unique_ptr<Optimizer> make_lamb(const OptimizerConfig& config, const Layout& layout);
std::unique_ptr<Optimizer> make_shampoo(const OptimizerConfig& config, const Layout& layout);

// Steps by g + decay * x in place of g.
std::unique_ptr<Optimizer> with_weight_decay(std::unique_ptr<Optimizer> inner, double decay,
                                             size_t size);
// Steps by g scaled down to the norm `most` where it has a larger one.
std::unique_ptr<Optimizer> with_clipping(std::unique_ptr<Optimizer> inner, double most,
                                         size_t size);

}  // namespace tutti

// What the server does with the average difference: takes it for a gradient.
//
//  sgd                  lr = 1 is federated averaging itself
//  momentum             FedAvgM: Hsu et al., "Measuring the effects of non-identical data
//                       distribution for federated visual classification", 2019
//  adagrad, adam, yogi  Reddi et al., "Adaptive federated optimization", ICLR 2021: like their
//                       namesakes, but the moments are not corrected for their start: the second
//                       ones start at eps^2 as in the paper, or at 0 as in Flower
//
// Running statistics become their average (parameter_layout.h: outer_layout_of).
#pragma once

#include <memory>

#include "strategies/federated_averaging/config.h"

namespace tutti::federated_averaging {

std::unique_ptr<Optimizer> make_server_optimizer(const ServerOptimizerConfig& config,
                                                 const Layout& layout);

}  // namespace tutti::federated_averaging

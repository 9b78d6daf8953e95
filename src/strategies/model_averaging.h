// Model averaging: workers train in isolation (exploration), a master merges their models and sends
// the result back (exploitation), once or every so often: the simplest decentralised optimisation
// (McDonald et al., "Distributed training strategies for the structured perceptron", NAACL 2010;
// Zinkevich et al., "Parallelized stochastic gradient descent", NIPS 2010).
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace tutti {

// [strategy] kind = "model_averaging"
struct ModelAveragingConfig {
  double merge_every = 1;  // epochs; 0: once, at the end
};

std::unique_ptr<Strategy> make_model_averaging();
std::vector<Variant> model_averaging_variants();

}  // namespace tutti

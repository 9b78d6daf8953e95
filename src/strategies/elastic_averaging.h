// Elastic averaging: workers explore on their own, a penalty on the distance attracts them to a
// centre and the centre to them (Zhang, Choromanska and LeCun, "Deep learning with elastic
// averaging SGD", NIPS 2015). With optimizer.kind = "nesterov" it is the momentum form, EAMSGD.
//
// Synchronously every worker holds the centre, and an all-reduce moves it alike on all of them
// while the gradient is computed. Asynchronously the first worker that is left holds it beside its
// own training and serves the others between its steps and between the layers of its backward pass:
// a node for the centre alone would be idle nearly all of the time. Quality is that of the centre.
#pragma once

#include <memory>

#include "strategies/local_training.h"
#include "strategies/strategy.h"

namespace tutti {

// [strategy] kind = "elastic_averaging"
struct ElasticAveragingConfig {
  Pace mode = Pace::kLockstep;
  int64_t sync_every = 4;
  double moving_rate = 0;  // alpha; 0: 0.9 / workers, as in the paper
  double penalty = 0;      // rho; another way to set alpha = lr rho, with the lr of each step
};

std::unique_ptr<Strategy> make_elastic_averaging();
std::vector<Variant> elastic_averaging_variants();

}  // namespace tutti

// The loop around strategies that take their steps together: epochs, learning rates, measurements
// of quality, records. What a step is, and who measures, is the strategy's own.
#pragma once

#include <cmath>

#include "data/batches.h"
#include "strategies/evaluation.h"
#include "strategies/strategy.h"

namespace tutti {

struct StepAhead {
  int64_t step = 0;     // of this epoch
  uint64_t number = 0;  // of all, from 0 on
  double rate = 0;
  // So many steps of this epoch will follow before anything is measured: who looks ahead may begin
  // with them.
  int64_t followers = 0;
};

// The mean loss over the samples that this node knows: its share of the batch, or more.
struct StepLoss {
  double mean = 0;  // NaN when there are none
  size_t samples = 0;
};
inline StepLoss mean_loss(double sum, size_t samples) {
  return {samples > 0 ? sum / static_cast<double>(samples) : NAN, samples};
}

class StepTaker {
 public:
  virtual ~StepTaker() = default;
  // Gradient and update, on all nodes or on none: throws diverged_at() before any parameter has
  // changed.
  virtual StepLoss take_step(const Batches& batches, const StepAhead& next) = 0;
  // Says of the last step's update how old its gradient was, unless it was computed in that step.
  virtual void date(Applied&) const {}
  // Quality on the validation samples, the same on every node.
  virtual Quality validate(Tag tag) = 0;
};

void run_steps(Context& context, Batches& batches, StepTaker& taker);

}  // namespace tutti

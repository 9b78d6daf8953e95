// The loop around strategies that take their steps together: epochs, learning rates, measurements
// of quality, records. What a step is, and who measures, is the strategy's own.
#pragma once

#include "data/batches.h"
#include "strategies/compute.h"
#include "strategies/strategy.h"

namespace tutti {

class StepTaker {
 public:
  virtual ~StepTaker() = default;
  // Step `step` of this epoch, the `number`th of all from 0 on: gradient and update. Returns the
  // mean loss over the samples that this node knows it of.
  virtual double take_step(const Batches& batches, int64_t step, uint64_t number, double rate) = 0;
  // Quality on the validation samples, the same on every node.
  virtual Quality validate(Tag tag) = 0;
};

// Throws DivergedError when a loss is not a finite number.
void run_steps(Context& context, Batches& batches, StepTaker& taker);

}  // namespace tutti

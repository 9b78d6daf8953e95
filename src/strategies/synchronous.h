// The loop that all synchronous data-parallel strategies share: same parameters everywhere, a
// gradient on this worker's share, one exchange, one step, taken by all or by none.
#pragma once

#include "strategies/gradient_sum.h"
#include "strategies/strategy.h"

namespace tutti {

// How the gradients of all workers become one sum.
class GradientExchange {
 public:
  virtual ~GradientExchange() = default;
  // The gradients in `range` are final. Called while the backward pass runs; must not block.
  virtual void ready(uint64_t step, Range range) = 0;
  // Blocks until model.gradients() holds the sum over all workers.
  virtual void finish(uint64_t step) = 0;
  // deterministic = true: the same for the exact sum of this worker's lanes.
  virtual GradientSum& exact_sum() = 0;
  virtual void finish_exact(uint64_t step) = 0;
};

// The class of strategies whose parameters are those of one worker alone, bitwise with
// deterministic = true and up to rounding without. With other partitions than "global" the batches
// depend on the workers, and so may what batch norm does.
std::string synchronous_class(const TaskConfig& task);

// With `balance` (partition "global" only) shares follow the speed of the workers: balance.h.
void train_synchronously(Context& context, GradientExchange& exchange, bool balance = false);

}  // namespace tutti

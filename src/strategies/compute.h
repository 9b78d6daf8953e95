// Computing on a node: the arithmetic, and what it costs there.
#pragma once

#include "core/error.h"
#include "strategies/strategy.h"

namespace tutti {

// The batches of the task, dealt to so many workers.
Batches deal_batches(const Context& context, int64_t workers);
// Brings samples into a batch, or only their numbers, which are enough where only costs count.
void gather(const Context& context, std::span<const uint32_t> samples, Batch& batch);

// The cost of the passes over a batch; nothing for an empty batch. The fixed cost of a gradient
// belongs to its forward pass.
Work forward_work(const Architecture& architecture, size_t samples);
Work backward_work(const Architecture& architecture, size_t samples);

// Parameters that are still on their way when a forward pass begins.
class LateParameters {
 public:
  virtual ~LateParameters() = default;
  virtual bool has(Range range) = 0;
  virtual void await(Range range) = 0;  // returns when they are in the model
};

// Runs model.gradient(), charges its time and counts its samples. Real fabrics call `ready` from
// within the backward pass.
// On a virtual one the arithmetic happens first, outside of time, and its ready ranges are then
// replayed, each after the work that makes it ready. With `late` parameters each layer of the
// forward pass waits for its own and for those before: on a virtual fabric the arithmetic comes
// when all are there, and the time of each layer passes before the next one waits.
double compute_gradient(Context& context, const Batch& batch, float scale,
                        const Model::Ready& ready, LateParameters* late = nullptr);

// What ends a run whose loss, or its gradient, is not a finite number in this step (from 0 on; the
// message counts from 1).
DivergedError diverged_at(uint64_t step);

// Takes an optimizer step on parameters of this layout, and charges its cost.
void update_parameters(Context& context, const Layout& layout, Optimizer& optimizer,
                       std::span<float> parameters, std::span<const float> gradient, double rate);
// The latter alone.
void charge_update(Context& context, const Layout& layout);

}  // namespace tutti

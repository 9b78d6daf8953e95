// Computing on a node: the arithmetic, and what it costs there.
#pragma once

#include "strategies/strategy.h"

namespace tutti {

// model.gradient() with its time charged. Real fabrics call `ready` from within the backward pass.
// On a virtual one the arithmetic happens first, outside of time, and its ready ranges are then
// replayed, each after the work that makes it ready.
double compute_gradient(Context& context, const Batch& batch, float scale,
                        const Model::Ready& ready);

// Quality on the given samples, shared among the members: each of them gets the same result, which
// does not depend on how many they are. A node that is not one of them gets NaN.
struct Quality {
  double loss = 0;     // mean
  double quality = 0;  // accuracy, or mean squared error
};
inline constexpr uint64_t kValidationPart = 0;  // of an evaluation tag
inline constexpr uint64_t kTestPart = 1;
Quality evaluate_together(Context& context, std::span<const uint32_t> samples, Tag tag);
Quality evaluate_among(Context& context, std::span<const Rank> members,
                       std::span<const uint32_t> samples, Tag tag);

// Charges what an optimizer step on `parameters` values costs.
void charge_update(Context& context, size_t parameters);

// True when `quality` meets the task's target.
bool reached(const Context& context, double quality);

}  // namespace tutti

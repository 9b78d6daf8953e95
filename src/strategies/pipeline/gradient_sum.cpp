#include "strategies/pipeline/gradient_sum.h"

#include <algorithm>
#include <utility>

#include "core/bytes.h"

namespace tutti {

GradientSum::GradientSum(Context& context, StageModel& model)
    : context_(context),
      model_(model),
      exact_(context.task.deterministic),
      arithmetic_(context.arithmetic()),
      sum_(exact_ ? 0 : model.parameters().size()),
      exact_sum_(exact_ ? model.parameters().size() : 0) {}

void GradientSum::add() {
  PhaseScope scope(context_.watch, Phase::kAggregate);
  const std::span<const float> gradients = model_.gradients();
  const auto count = static_cast<double>(gradients.size());
  const bool first = !std::exchange(begun_, true);
  if (exact_) {
    const std::span<ExactSum> sum = exact_sum_.span();
    if (first) arithmetic_.fill(sum, {});
    arithmetic_.perform([&] { accumulate(sum, gradients); });
    context_.node.clock().charge({.flops = 0, .memory_bytes = 36 * count});
    return;
  }
  if (first)
    arithmetic_.copy(gradients, sum_.span());
  else
    arithmetic_.add(sum_.span(), gradients);
  context_.node.clock().charge({.flops = 0, .memory_bytes = (first ? 8 : 12) * count});
}

std::span<std::byte> GradientSum::bytes() {
  if (!std::exchange(begun_, true)) {
    arithmetic_.fill(exact_sum_.span(), {});
    arithmetic_.fill(sum_.span(), 0);
  }
  return exact_ ? writable_bytes_of(exact_sum_.span()) : writable_bytes_of(sum_.span());
}

std::span<const float> GradientSum::values() {
  if (!exact_) return sum_.span();
  arithmetic_.perform([&] { round_all(exact_sum_.span(), model_.gradients()); });
  context_.node.clock().charge(
      {.flops = 0, .memory_bytes = 20.0 * static_cast<double>(exact_sum_.size())});
  return model_.gradients();
}

}  // namespace tutti

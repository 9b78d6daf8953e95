#include "strategies/gradient_sum.h"

namespace tutti {
namespace {

Sum make_sum(const Context& context, size_t count, std::span<std::byte> memory) {
  const SumKind kind = sum_kind(context.task);
  return memory.empty() ? Sum(kind, count, context.arithmetic())
                        : Sum(kind, memory, context.arithmetic());
}

}  // namespace

SumKind sum_kind(const TaskConfig& task) {
  return task.deterministic ? SumKind::kExact : SumKind::kPlain;
}

size_t sum_element_bytes(const TaskConfig& task) {
  return reduction_of(sum_kind(task)).element_bytes;
}

GradientSum::GradientSum(Context& context, std::span<float> gradients, std::span<std::byte> memory)
    : context_(context),
      exact_(sum_kind(context.task) == SumKind::kExact),
      gradients_(gradients),
      sum_(make_sum(context, gradients.size(), memory)) {}

// An exact sum is read and written beside the gradient; a plain one is copied first.
void GradientSum::add() {
  PhaseScope scope(context_.watch, Phase::kAggregate);
  const double bytes_each = exact_ ? 36 : sum_.is_empty() ? 8 : 12;
  sum_.add(gradients_);
  context_.node.clock().charge(
      {.flops = 0, .memory_bytes = bytes_each * static_cast<double>(gradients_.size())});
}

std::span<const float> GradientSum::values() {
  const std::span<const float> values = sum_.values(gradients_);
  if (exact_)
    context_.node.clock().charge(
        {.flops = 0, .memory_bytes = 20.0 * static_cast<double>(values.size())});
  return values;
}

}  // namespace tutti

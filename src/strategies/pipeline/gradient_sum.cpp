#include "strategies/pipeline/gradient_sum.h"

#include <algorithm>
#include <utility>

#include "core/bytes.h"

namespace tutti {

GradientSum::GradientSum(Context& context, StageModel& model)
    : context_(context),
      model_(model),
      exact_(context.task.deterministic),
      arithmetic_(!context.node.clock().cost_only()),
      sum_(exact_ ? 0 : model.parameters().size()),
      exact_sum_(exact_ ? model.parameters().size() : 0) {}

void GradientSum::add() {
  PhaseScope scope(context_.watch, Phase::kAggregate);
  const std::span<const float> gradients = model_.gradients();
  const auto count = static_cast<double>(gradients.size());
  const bool first = !std::exchange(begun_, true);
  if (exact_) {
    const std::span<ExactSum> sum = exact_sum_.span();
    if (arithmetic_ && first) std::fill(sum.begin(), sum.end(), ExactSum{});
    if (arithmetic_) accumulate(sum, gradients);
    context_.node.clock().charge({.flops = 0, .memory_bytes = 36 * count});
    return;
  }
  if (arithmetic_ && first) std::copy(gradients.begin(), gradients.end(), sum_.data());
  if (arithmetic_ && !first)
    for (size_t i = 0; i < gradients.size(); ++i) sum_.data()[i] += gradients[i];
  context_.node.clock().charge({.flops = 0, .memory_bytes = (first ? 8 : 12) * count});
}

std::span<std::byte> GradientSum::bytes() {
  if (!std::exchange(begun_, true) && arithmetic_) {
    std::fill_n(exact_sum_.data(), exact_sum_.size(), ExactSum{});
    std::fill_n(sum_.data(), sum_.size(), 0.0F);
  }
  return exact_ ? writable_bytes_of(exact_sum_.span()) : writable_bytes_of(sum_.span());
}

std::span<const float> GradientSum::values() {
  if (!exact_) return sum_.span();
  if (arithmetic_) round_all(exact_sum_.span(), model_.gradients());
  context_.node.clock().charge(
      {.flops = 0, .memory_bytes = 20.0 * static_cast<double>(exact_sum_.size())});
  return model_.gradients();
}

}  // namespace tutti

#include "strategies/parameter_server/shard.h"

#include <algorithm>

#include "core/error.h"
#include "strategies/compute.h"

namespace tutti::parameter_server {

Shard::Shard(Context& context, Range range)
    : context_(context),
      range_(range),
      exact_(context.task.deterministic),
      values_(context.model.parameters().subspan(range.begin, range.size())),
      rows_(context.model.architecture().row_width > 0 ? std::make_unique<RowShard>(context)
                                                       : nullptr),
      optimizer_(make_optimizer(context.optimizer, range.size())),
      gradient_(exact_ ? range.size() : 0),
      kept_(range.size()) {}

size_t Shard::take_slot() {
  if (free_.empty()) {
    slots_.emplace_back(range_.size() * element_bytes());
    return slots_.size() - 1;
  }
  const size_t slot = free_.back();
  free_.pop_back();
  return slot;
}

std::span<std::byte> Shard::slot(size_t slot) { return slots_[slot].span(); }

void Shard::apply(std::span<const size_t> slots, double factor, double rate) {
  TUTTI_CHECK(!slots.empty());
  if (rows_) return rows_->apply(slots, factor, rate);
  PhaseScope scope(context_.watch, Phase::kAggregate);
  Clock& clock = context_.node.clock();
  if (!clock.cost_only()) {
    if (exact_)
      sum_exactly(slots);
    else
      sum_floats(slots, static_cast<float>(factor));
    const std::span<const float> gradient =
        exact_ ? gradient_.span() : values_in<float>(slot(slots.front()));
    optimizer_->step(values_, gradient, rate);
  }
  if (slots.size() > 1 || exact_ || factor != 1)
    clock.charge({.flops = 0,
                  .memory_bytes = static_cast<double>(slots.size() + 1) *
                                  static_cast<double>(range_.size() * element_bytes())});
  charge_update(context_, range_.size());
}

void Shard::sum_floats(std::span<const size_t> slots, float factor) {
  const std::span<float> sum = values_in<float>(slot(slots.front()));
  for (const size_t other : slots.subspan(1)) {
    const std::span<const float> more = values_in<float>(slot(other));
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
  }
  if (factor != 1)
    for (float& value : sum) value *= factor;
}

void Shard::sum_exactly(std::span<const size_t> slots) {
  const std::span<ExactSum> sum = values_in<ExactSum>(slot(slots.front()));
  for (const size_t other : slots.subspan(1)) {
    const std::span<const ExactSum> more = values_in<ExactSum>(slot(other));
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = sum[i] + more[i];
  }
  round_all(sum, gradient_.span());
}

void Shard::keep() {
  if (rows_) return rows_->keep();
  if (!context_.node.clock().cost_only())
    std::copy(values_.begin(), values_.end(), kept_.span().begin());
  context_.node.clock().charge(
      {.flops = 0, .memory_bytes = 8.0 * static_cast<double>(range_.size())});
}

}  // namespace tutti::parameter_server

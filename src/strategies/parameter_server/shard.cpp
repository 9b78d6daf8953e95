#include "strategies/parameter_server/shard.h"

#include <algorithm>

#include "core/error.h"
#include "strategies/compute.h"
#include "strategies/gradient_sum.h"
#include "strategies/parameter_layout.h"
#include "strategies/parameter_server/shared_memory.h"

namespace tutti::parameter_server {
namespace {

constexpr size_t kBlock = 16384;  // values: a few such arrays fit every second-level cache

// Where workers of the same host can read the values, if there is such a place.
std::span<float> place_of(Context& context, Range range, Buffer<float>& own) {
  if (!context.window) {
    own = Buffer<float>(range.size());
    return own.span();
  }
  const std::span<float> shared =
      floats_in(*context.window, context.node.endpoint().rank(), 0, range.size());
  TUTTI_CHECK(shared.size() == range.size());
  return shared;
}

}  // namespace

Shard::Shard(Context& context, Range range)
    : context_(context),
      range_(range),
      layout_(layout_of(context.model.architecture(), range)),
      kind_(sum_kind(context.task)),
      values_(place_of(context, range, own_values_)),
      rows_(context.model.architecture().row_width > 0 ? std::make_unique<RowShard>(context)
                                                       : nullptr),
      gradient_(exact() ? range.size() : 0),
      kept_(range.size()) {
  if (!rows_) context.model.initial_values(range, values_);
  // Elements do not influence one another, unless tensors or the norm of the whole count.
  const OptimizerConfig& optimizer = context.optimizer;
  const bool whole = exact() || needs_tensors(optimizer) || optimizer.clip_norm > 0;
  const size_t size = range.size(), step = whole ? std::max<size_t>(1, size) : kBlock;
  for (size_t begin = 0; begin < std::max<size_t>(1, size); begin += step) {
    const Range block{begin, std::min(size, begin + step)};
    const Range place{range.begin + block.begin, range.begin + block.end};
    blocks_.push_back(
        {block, make_optimizer(optimizer, layout_of(context.model.architecture(), place))});
  }
}

size_t Shard::take_slot() {
  if (free_.empty()) {
    Slot& slot = slots_.emplace_back();
    slot.own = Buffer<std::byte>(range_.size() * element_bytes());
    slot.bytes = slot.own.span();
    return slots_.size() - 1;
  }
  const size_t slot = free_.back();
  free_.pop_back();
  return slot;
}

size_t Shard::lend_slot(std::span<float> gradient) {
  TUTTI_CHECK(gradient.size() == range_.size() && !exact());
  if (free_lent_.empty()) {
    free_lent_.push_back(slots_.size());
    slots_.emplace_back().lent = true;
  }
  const size_t slot = free_lent_.back();
  free_lent_.pop_back();
  slots_[slot].bytes = writable_bytes_of(gradient);
  return slot;
}

size_t Shard::own_slot(size_t slot) {
  if (!slots_[slot].lent) return slot;
  const size_t own = take_slot();
  const std::span<const std::byte> from = slots_[slot].bytes;
  context_.arithmetic().copy(from, slots_[own].bytes);
  context_.node.clock().charge(
      {.flops = 0, .memory_bytes = 2.0 * static_cast<double>(from.size())});
  free_slot(slot);
  return own;
}

void Shard::free_slot(size_t slot) { (slots_[slot].lent ? free_lent_ : free_).push_back(slot); }

std::span<const float> Shard::apply(std::span<const size_t> slots, double factor, double rate) {
  TUTTI_CHECK(!slots.empty() && !rows_);
  PhaseScope scope(context_.watch, Phase::kAggregate);
  context_.arithmetic().perform([&] {
    if (exact()) sum_exactly(slots);
    for (const Block& block : blocks_)
      step(block,
           exact() ? gradient_.span() : sum_floats(slots, static_cast<float>(factor), block.range),
           rate);
  });
  if (slots.size() > 1 || exact() || factor != 1)
    context_.node.clock().charge(
        {.flops = 0,
         .memory_bytes = static_cast<double>(slots.size() + 1) *
                         static_cast<double>(range_.size() * element_bytes())});
  charge_update(context_, layout_);
  if (exact()) return gradient_.span();
  if (slots_[slots.front()].lent) return {};
  return values_in<float>(slot(slots.front()));
}

void Shard::apply(std::span<const float> gradient, double rate) {
  PhaseScope scope(context_.watch, Phase::kAggregate);
  context_.arithmetic().perform([&] {
    for (const Block& block : blocks_)
      step(block, gradient.subspan(block.range.begin, block.range.size()), rate);
  });
  charge_update(context_, layout_);
}

void Shard::step(const Block& block, std::span<const float> gradient, double rate) {
  block.optimizer->step(values_.subspan(block.range.begin, block.range.size()), gradient, rate);
}

std::span<const float> Shard::sum_floats(std::span<const size_t> slots, float factor, Range block) {
  const auto part = [&](size_t slot) {
    return values_in<float>(slots_[slot].bytes).subspan(block.begin, block.size());
  };
  const std::span<float> first = part(slots.front());
  if (slots.size() == 1 && factor == 1) return first;
  const bool lent = slots_[slots.front()].lent;
  if (lent && gradient_.size() == 0) gradient_ = Buffer<float>(blocks_.front().range.size());
  const std::span<float> sum = lent ? gradient_.span().first(block.size()) : first;
  size_t added = 1;
  if (lent && slots.size() > 1) {
    const std::span<const float> second = part(slots[added++]);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = first[i] + second[i];
  } else if (lent) {
    std::copy(first.begin(), first.end(), sum.begin());
  }
  for (; added < slots.size(); ++added) {
    const std::span<const float> more = part(slots[added]);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
  }
  if (factor != 1)
    for (float& value : sum) value *= factor;
  return sum;
}

void Shard::sum_exactly(std::span<const size_t> slots) {
  Sum sum = Sum::of(kind_, slot(slots.front()), context_.arithmetic());
  for (const size_t other : slots.subspan(1))
    sum.add(Sum::of(kind_, slot(other), context_.arithmetic()));
  sum.values(gradient_.span());
}

std::vector<std::span<float>> Shard::state() {
  std::vector<std::span<float>> state = {values_};
  for (const Block& block : blocks_)
    for (const std::span<float> part : block.optimizer->state()) state.push_back(part);
  return state;
}

Buffer<float> Shard::save() {
  size_t count = kept_.size();
  for (const std::span<float> part : state()) count += part.size();
  Buffer<float> saved(count);
  context_.arithmetic().perform([&] {
    float* to = std::copy(kept_.span().begin(), kept_.span().end(), saved.data());
    for (const std::span<float> part : state()) to = std::copy(part.begin(), part.end(), to);
  });
  context_.node.clock().charge({.flops = 0, .memory_bytes = 8.0 * static_cast<double>(count)});
  return saved;
}

void Shard::restore(std::span<const float> saved, int64_t optimizer_steps) {
  resume(optimizer_steps);
  context_.node.clock().charge(
      {.flops = 0, .memory_bytes = 8.0 * static_cast<double>(saved.size())});
  context_.arithmetic().perform([&] {
    std::vector<std::span<float>> parts = state();
    parts.insert(parts.begin(), kept_.span());
    for (const std::span<float> part : parts) {
      if (saved.size() < part.size()) throw DataError("the state of a shard has another size");
      std::copy_n(saved.begin(), part.size(), part.begin());
      saved = saved.subspan(part.size());
    }
  });
}

void Shard::keep() {
  if (rows_) return rows_->keep();
  context_.arithmetic().copy(values_, kept_.span());
  context_.node.clock().charge(
      {.flops = 0, .memory_bytes = 8.0 * static_cast<double>(range_.size())});
}

}  // namespace tutti::parameter_server

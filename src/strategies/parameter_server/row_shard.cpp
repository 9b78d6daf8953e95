#include "strategies/parameter_server/row_shard.h"

#include <algorithm>

#include "core/error.h"
#include "models/sparse_model.h"

namespace tutti::parameter_server {

RowShard::RowShard(Context& context)
    : context_(context),
      exact_(context.task.deterministic),
      optimizer_(context.optimizer),
      table_(context.model.architecture().row_width,
             optimizer_.state_width(context.model.architecture().row_width),
             [&context](uint64_t key, std::span<float> row) {
               initial_row(context.model.architecture(), context.task.seed, key, row);
             }) {}

size_t RowShard::element_bytes() const { return exact_ ? sizeof(ExactSum) : sizeof(float); }

RowShard::Slot& RowShard::slot(size_t index) {
  while (slots_.size() <= index) slots_.emplace_back();
  return slots_[index];
}

std::span<uint64_t> RowShard::keys(size_t index, size_t count) {
  Slot& room = slot(index);
  room.count = count;
  if (room.keys.size() < count) room.keys = Buffer<uint64_t>(count);
  return room.keys.span().first(count);
}

std::span<std::byte> RowShard::gradients(size_t index, size_t count) {
  Slot& room = slot(index);
  const size_t bytes = count * width() * element_bytes();
  if (room.gradients.size() < bytes) room.gradients = Buffer<std::byte>(bytes);
  return room.gradients.span().first(bytes);
}

std::span<const uint64_t> RowShard::keys(size_t index) const {
  return slots_[index].keys.span().first(slots_[index].count);
}

// Merges two ascending lists; where both have a key, rows are added.
template <class T>
void RowShard::add(Sums<T>& sums, Sums<T>& scratch, std::span<const uint64_t> keys,
                   std::span<const T> rows) {
  const size_t w = width(), most = sums.keys.size() + keys.size();
  scratch.keys.resize(most);
  scratch.rows.resize(most * w);
  size_t a = 0, b = 0, n = 0;
  for (; a < sums.keys.size() || b < keys.size(); ++n) {
    const bool from_sums = b == keys.size() || (a < sums.keys.size() && sums.keys[a] <= keys[b]);
    const bool from_keys = a == sums.keys.size() || (b < keys.size() && keys[b] <= sums.keys[a]);
    scratch.keys[n] = from_sums ? sums.keys[a] : keys[b];
    const T* const old = from_sums ? sums.rows.data() + a * w : nullptr;
    const T* const more = from_keys ? rows.data() + b * w : nullptr;
    T* const to = scratch.rows.data() + n * w;
    for (size_t c = 0; c < w; ++c) to[c] = !old ? more[c] : !more ? old[c] : old[c] + more[c];
    a += from_sums;
    b += from_keys;
  }
  scratch.keys.resize(n);
  scratch.rows.resize(n * w);
  std::swap(sums, scratch);
}

template <class T>
void RowShard::add_up(Sums<T>& sums, Sums<T>& scratch, std::span<const size_t> slots) {
  sums.keys.clear();
  sums.rows.clear();
  for (const size_t index : slots) {
    const std::span<const uint64_t> listed = keys(index);
    add<T>(sums, scratch, listed, values_in<T>(gradients(index, listed.size())));
  }
}

void RowShard::apply(std::span<const size_t> slots, double factor, double rate) {
  PhaseScope scope(context_.watch, Phase::kAggregate);
  size_t count = 0;
  for (const size_t index : slots) count += keys(index).size();
  if (!context_.node.clock().cost_only()) {
    const size_t w = width();
    std::span<const uint64_t> touched = keys(slots.front());
    std::span<const float> rows;
    if (exact_) {
      add_up(exact_sums_, more_exact_sums_, slots);
      floats_.rows.resize(exact_sums_.rows.size());
      round_all(exact_sums_.rows, floats_.rows);
      touched = exact_sums_.keys;
      rows = floats_.rows;
    } else if (slots.size() == 1 && factor == 1) {
      rows = values_in<float>(gradients(slots.front(), touched.size()));
    } else {
      add_up(floats_, more_floats_, slots);
      if (factor != 1)
        for (float& value : floats_.rows) value *= static_cast<float>(factor);
      touched = floats_.keys;
      rows = floats_.rows;
    }
    table_.update(touched, [&](size_t i, uint32_t row) {
      optimizer_.step(table_.values(row), table_.state(row), rows.subspan(i * w, w), rate);
    });
  }
  const auto state = static_cast<double>(optimizer_.state_width(width()));
  charge(static_cast<double>(count) * (3 * static_cast<double>(width()) + 2 * state), count);
}

void RowShard::read(std::span<const uint64_t> keys, bool kept, std::span<float> rows) {
  charge(2 * static_cast<double>(rows.size()), keys.size());
  if (context_.node.clock().cost_only()) return;
  if (!kept) return table_.read(keys, rows);
  const size_t w = width(), there = kept_.size() / w;
  for (size_t i = 0; i < keys.size(); ++i) {
    const uint32_t row = table_.find(keys[i]);
    const std::span<float> to = rows.subspan(i * w, w);
    if (row < there) {
      const std::span<const float> from = std::span(kept_).subspan(row * w, w);
      std::copy(from.begin(), from.end(), to.begin());
    } else {
      table_.initial(keys[i], to);  // it was made later, or not at all
    }
  }
}

// Rows are numbered in the order in which they were made, so those that are there now are the first
// for good.
void RowShard::keep() {
  charge(2 * static_cast<double>(table_.size() * width()), 0);
  if (context_.node.clock().cost_only()) return;
  const size_t w = width();
  kept_.resize(table_.size() * w);
  for (uint32_t row = 0; row < table_.size(); ++row)
    std::copy_n(table_.values(row).data(), w, kept_.data() + row * w);
}

// Floats that are read or written, and a cache line for each lookup.
void RowShard::charge(double floats, size_t keys) {
  context_.node.clock().charge(
      {.flops = 0, .memory_bytes = floats * sizeof(float) + 64.0 * static_cast<double>(keys)});
}

}  // namespace tutti::parameter_server

#include "strategies/parameter_server/row_shard.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "models/sparse_model.h"
#include "strategies/gradient_sum.h"

namespace tutti::parameter_server {

RowShard::RowShard(Context& context)
    : context_(context),
      arithmetic_(context.arithmetic()),
      kind_(sum_kind(context.task)),
      width_(context.model.architecture().row_width),
      optimizer_(context.optimizer),
      table_(make_table()) {}

// When only costs count it has the keys, which say how much travels, but not the rows.
RowTable RowShard::make_table() const {
  if (!arithmetic_.is_done()) return RowTable(1, 0);
  return RowTable(width_, optimizer_.state_width(width_),
                  [&context = context_](uint64_t key, std::span<float> row) {
                    initial_row(context.model.architecture(), context.task.seed, key, row);
                  });
}

size_t RowShard::element_bytes() const { return reduction_of(kind_).element_bytes; }

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
void RowShard::add(std::span<const uint64_t> keys, std::span<const std::byte> rows) {
  const size_t row = arithmetic_.is_done() ? width() * element_bytes() : 0;
  const size_t most = sums_.keys.size() + keys.size();
  more_sums_.keys.resize(most);
  more_sums_.rows.resize(most * row);
  size_t a = 0, b = 0, n = 0;
  for (; a < sums_.keys.size() || b < keys.size(); ++n) {
    const bool old = b == keys.size() || (a < sums_.keys.size() && sums_.keys[a] <= keys[b]);
    const bool more = a == sums_.keys.size() || (b < keys.size() && keys[b] <= sums_.keys[a]);
    more_sums_.keys[n] = old ? sums_.keys[a] : keys[b];
    std::byte* const to = more_sums_.rows.data() + n * row;
    if (row > 0) std::memcpy(to, old ? sums_.rows.data() + a * row : rows.data() + b * row, row);
    if (row > 0 && old && more) reduction_of(kind_).combine(to, rows.data() + b * row, width());
    a += old;
    b += more;
  }
  more_sums_.keys.resize(n);
  more_sums_.rows.resize(n * row);
  std::swap(sums_, more_sums_);
}

RowSum RowShard::sum_of(std::span<const size_t> slots, double factor) {
  if (slots.size() == 1 && factor == 1 && kind_ == SumKind::kPlain) {
    const std::span<const uint64_t> touched = keys(slots.front());
    return {touched, values_in<float>(gradients(slots.front(), touched.size()))};
  }
  sums_.keys.clear();
  sums_.rows.clear();
  for (const size_t index : slots) {
    const std::span<const uint64_t> listed = keys(index);
    add(listed, gradients(index, listed.size()));
  }
  Sum sum = Sum::of(kind_, std::span(sums_.rows), arithmetic_);
  rounded_.resize(kind_ == SumKind::kExact ? sum.size() : 0);
  if (kind_ == SumKind::kPlain && factor != 1)
    for (float& value : values_in<float>(sum.bytes())) value *= static_cast<float>(factor);
  return {sums_.keys, sum.values(rounded_)};
}

RowSum RowShard::apply(std::span<const size_t> slots, double factor, double rate) {
  PhaseScope scope(context_.watch, Phase::kAggregate);
  const RowSum sum = sum_of(slots, factor);
  size_t count = 0;
  for (const size_t index : slots) count += keys(index).size();
  step(sum, rate);
  charge_steps(count);
  return sum;
}

void RowShard::apply(const RowSum& sum, double rate) {
  PhaseScope scope(context_.watch, Phase::kAggregate);
  step(sum, rate);
  charge_steps(sum.keys.size());
}

void RowShard::step(const RowSum& sum, double rate) {
  const size_t w = width();
  table_.update(sum.keys, [&](size_t i, uint32_t row) {
    arithmetic_.perform([&] {
      optimizer_.step(table_.values(row), table_.state(row), sum.rows.subspan(i * w, w), rate);
    });
  });
}

void RowShard::charge_steps(size_t gradients) {
  const size_t floats = width() + 2 * stride();
  charge(static_cast<double>(gradients * floats), gradients);
}

void RowShard::read(std::span<const uint64_t> keys, bool kept, std::span<float> rows) {
  charge(2 * static_cast<double>(rows.size()), keys.size());
  arithmetic_.perform([&] { kept ? read_kept(keys, rows) : table_.read(keys, rows); });
}

void RowShard::read_kept(std::span<const uint64_t> keys, std::span<float> rows) const {
  const size_t w = width(), there = kept_rows_;
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
  kept_rows_ = table_.size();
  arithmetic_.perform([&] {
    const size_t w = width();
    kept_.resize(table_.size() * w);
    for (uint32_t row = 0; row < table_.size(); ++row)
      std::copy_n(table_.values(row).data(), w, kept_.data() + row * w);
  });
}

Buffer<float> RowShard::save(bool kept) {
  const size_t kept_floats = kept ? kept_rows_ * width() : 0;
  Buffer<float> saved(table_.size() * stride() + kept_floats);
  charge(2 * static_cast<double>(saved.size()), 0);
  arithmetic_.perform([&] {
    for (uint32_t row = 0; row < table_.size(); ++row)
      std::copy_n(table_.values_and_state(row).data(), stride(), saved.data() + row * stride());
    std::copy_n(kept_.data(), kept_floats, saved.data() + table_.size() * stride());
  });
  return saved;
}

bool RowShard::restore(std::span<const uint64_t> keys, size_t kept, std::span<const float> saved) {
  if (kept > keys.size() || saved.size() != keys.size() * stride() + kept * width()) return false;
  charge(2 * static_cast<double>(saved.size()), keys.size());
  table_ = make_table();
  kept_rows_ = kept;
  for (const uint64_t key : keys) {
    const uint32_t row = table_.find_or_make(key);
    arithmetic_.perform([&] {
      std::copy_n(saved.data() + row * stride(), stride(), table_.values_and_state(row).data());
    });
  }
  arithmetic_.perform([&] {
    const std::span<const float> rest = saved.subspan(keys.size() * stride());
    kept_.assign(rest.begin(), rest.end());
  });
  return table_.size() == keys.size();  // none of them came twice
}

// Floats that are read or written, and a cache line for each lookup.
void RowShard::charge(double floats, size_t keys) {
  context_.node.clock().charge(
      {.flops = 0, .memory_bytes = floats * sizeof(float) + 64.0 * static_cast<double>(keys)});
}

}  // namespace tutti::parameter_server

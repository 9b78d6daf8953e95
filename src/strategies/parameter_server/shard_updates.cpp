#include "strategies/parameter_server/shard_updates.h"

#include <algorithm>

#include "core/error.h"

namespace tutti::parameter_server {

std::vector<size_t> ShardUpdates::slots_of(const std::vector<GradientName>& names) const {
  std::vector<size_t> slots;
  slots.reserve(names.size());
  for (const GradientName& name : names) {
    const std::optional<size_t> slot = held_.slot_of(name);
    TUTTI_CHECK(slot);
    slots.push_back(*slot);
  }
  return slots;
}

void ShardUpdates::update(const output::Update& update, Chain::Item& item, bool passes_on) {
  if (shard_.rows()) return update_rows(update, item, passes_on);
  const std::span<const float> gradient =
      shard_.apply(slots_of(update.gradients), update.factor, update.rate);
  if (!passes_on || gradient.empty()) return;
  pass_on(gradient, gradient.size(), item);
  clock_.charge({.flops = 0, .memory_bytes = 8.0 * static_cast<double>(gradient.size())});
}

void ShardUpdates::pass_on(std::span<const float> gradient, size_t count, Chain::Item& item) {
  item.entry.elements = count;
  item.values = Buffer<float>(count);
  clock_.arithmetic().copy(gradient, item.values.span());
}

// Only the keys that have a gradient are updated, and they go along with it.
void ShardUpdates::update_rows(const output::Update& update, Chain::Item& item, bool passes_on) {
  RowShard& rows = *shard_.rows();
  const RowSum sum = rows.apply(slots_of(update.gradients), update.factor, update.rate);
  if (!passes_on || sum.keys.empty()) return;
  const auto keys = bytes_of(sum.keys);
  item.rest.assign(keys.begin(), keys.end());
  item.entry.bytes = item.rest.size();
  pass_on(sum.rows, sum.keys.size() * rows.width(), item);
  clock_.charge({.flops = 0, .memory_bytes = 8.0 * static_cast<double>(item.values.size())});
}

void ShardUpdates::follow(const output::Update& update, Chain::Item& item) {
  if (shard_.rows())
    shard_.rows()->apply(RowSum{values_in<uint64_t>(item.rest), item.values.span()}, update.rate);
  else
    shard_.apply(item.values.span(), update.rate);
}

// All servers in the chain get the gradient itself, because all of them keep the sums of clocks.
void ShardUpdates::revise(const output::Revise& revision, Chain::Item& item, bool passes_on) {
  const std::optional<size_t> slot = held_.slot_of(revision.gradient);
  TUTTI_CHECK(slot);
  const std::span<const float> gradient = values_in<float>(shard_.slot(*slot));
  if (passes_on && !gradient.empty()) pass_on(gradient, gradient.size(), item);
  revise_by(revision, gradient);
}

void ShardUpdates::follow(const output::Revise& revision, Chain::Item& item) {
  revise_by(revision, item.values.span());
}

// A gradient is that of its part divided by the number of parts, so multiplying it by that number
// gives the worker's own update.
void ShardUpdates::revise_by(const output::Revise& revision, std::span<const float> gradient) {
  if (!clock_.arithmetic().is_done()) gradient = {};
  shard_.apply(means_.revise(revision.clock, gradient, revision.parts, revision.rate),
               revision.rate);
  clock_.charge({.flops = 0, .memory_bytes = 16.0 * static_cast<double>(shard_.range().size())});
  means_.forget_before(revision.oldest);
}

Buffer<float> ShardUpdates::save(Archive& archive) {
  int64_t optimizer_steps = shard_.optimizer_steps();
  archive(optimizer_steps);
  means_.archive(archive);
  RowShard* const rows = shard_.rows();
  if (!rows) return shard_.save();
  // Which rows there are, and how many were kept.
  const std::span<const uint64_t> made = rows->table().keys();
  std::vector<uint64_t> keys(made.begin(), made.end());
  uint64_t kept = rows->kept();
  archive(keys, kept);
  return rows->save(true);
}

void ShardUpdates::restore(Archive& archive, std::span<const float> values) {
  int64_t optimizer_steps = 0;
  archive(optimizer_steps);
  means_.archive(archive);
  if (!shard_.rows()) return shard_.restore(values, optimizer_steps);
  std::vector<uint64_t> keys;
  uint64_t kept = 0;
  archive(keys, kept);
  if (!shard_.rows()->restore(keys, kept, values))
    throw DataError("the state of a shard has another size");
}

}  // namespace tutti::parameter_server

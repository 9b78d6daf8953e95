// A server's part of the parameters: where gradients arrive, how they become an update.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "collectives/exact_sum.h"
#include "core/bytes.h"
#include "strategies/parameter_server/row_shard.h"
#include "strategies/strategy.h"

namespace tutti::parameter_server {

class Shard {
 public:
  Shard(Context& context, Range range);

  Range range() const { return range_; }
  size_t element_bytes() const { return exact_ ? sizeof(ExactSum) : sizeof(float); }
  std::span<const float> values() const { return values_; }
  // Of a sparse model, whose range is empty: the rows, by key. Otherwise nullptr.
  RowShard* rows() { return rows_.get(); }

  // Gradients arrive in slots, one for each push that is not yet applied or dropped.
  size_t take_slot();
  void free_slot(size_t slot) { free_.push_back(slot); }
  std::span<std::byte> slot(size_t slot);

  // Adds up the slots in this order, times `factor`, and takes an optimizer step.
  void apply(std::span<const size_t> slots, double factor, double rate);

  // Sets the current values aside for an evaluation.
  void keep();
  std::span<const float> kept() const { return kept_.span(); }

 private:
  void sum_floats(std::span<const size_t> slots, float factor);
  void sum_exactly(std::span<const size_t> slots);

  Context& context_;
  Range range_;
  bool exact_;
  std::span<float> values_;
  std::unique_ptr<RowShard> rows_;
  std::unique_ptr<Optimizer> optimizer_;
  std::deque<Buffer<std::byte>> slots_;
  std::vector<size_t> free_;
  Buffer<float> gradient_;  // exact sums, rounded
  Buffer<float> kept_;
};

}  // namespace tutti::parameter_server

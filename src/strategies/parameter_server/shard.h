// A server's part of the parameters: where gradients arrive, how they become an update.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "collectives/sum.h"
#include "core/bytes.h"
#include "strategies/parameter_server/row_shard.h"
#include "strategies/strategy.h"

namespace tutti::parameter_server {

class Shard {
 public:
  Shard(Context& context, Range range);

  Range range() const { return range_; }
  size_t element_bytes() const { return reduction_of(kind_).element_bytes; }  // of a gradient
  std::span<const float> values() const { return values_; }
  // Of a sparse model, whose range is empty: the rows, by key. Otherwise nullptr.
  RowShard* rows() { return rows_.get(); }

  // Gradients arrive in slots, one for each push that is not yet applied or dropped.
  size_t take_slot();
  void free_slot(size_t slot);
  std::span<std::byte> slot(size_t slot) { return slots_[slot].bytes; }
  // A slot that is a gradient in its worker's memory, and is only read.
  size_t lend_slot(std::span<float> gradient);
  // The same gradient in memory of its own, whosever it is in now.
  size_t own_slot(size_t slot);

  // Adds up the slots in this order, times `factor`, and takes an optimizer step with the sum,
  // which it returns; it stays until the first slot is freed. Nothing when that slot is lent: then
  // there is no place that has all of it. Rows are updated by themselves.
  std::span<const float> apply(std::span<const size_t> slots, double factor, double rate);
  // Takes an optimizer step with a sum that somebody else has added up.
  void apply(std::span<const float> gradient, double rate);

  // Sets the current values aside for an evaluation.
  void keep();
  std::span<const float> kept() const { return kept_.span(); }

  // What the next update depends on: the values, then the state of the optimizer.
  std::vector<std::span<float>> state();
  // All of that and what was kept, in one piece, for a replica.
  Buffer<float> save();
  void restore(std::span<const float> saved, int64_t optimizer_steps);
  int64_t optimizer_steps() const { return blocks_.front().optimizer->steps(); }
  void resume(int64_t optimizer_steps) {
    for (const Block& block : blocks_) block.optimizer->resume(optimizer_steps);
  }

 private:
  struct Slot {
    Buffer<std::byte> own;
    std::span<std::byte> bytes;  // of `own`, or lent
    bool lent = false;
  };
  // A part whose gradients are added up and applied before the next: they are in the cache then.
  struct Block {
    Range range;  // within the shard
    std::unique_ptr<Optimizer> optimizer;
  };
  bool exact() const { return kind_ == SumKind::kExact; }
  void step(const Block& block, std::span<const float> gradient, double rate);
  // The sum over a block: in the first slot, or in a buffer if that one is lent.
  std::span<const float> sum_floats(std::span<const size_t> slots, float factor, Range block);
  void sum_exactly(std::span<const size_t> slots);

  Context& context_;
  Range range_;
  Layout layout_;
  SumKind kind_;
  Buffer<float> own_values_;  // unless they lie in the window
  std::span<float> values_;
  std::unique_ptr<RowShard> rows_;
  std::vector<Block> blocks_;
  std::deque<Slot> slots_;
  std::vector<size_t> free_, free_lent_;
  Buffer<float> gradient_;  // exact sums, rounded; or the sum of one block of lent slots
  Buffer<float> kept_;
};

}  // namespace tutti::parameter_server

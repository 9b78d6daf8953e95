// A server's part of a sparse model: the rows whose keys fall to it, made when they are first
// updated, each with the optimizer's state beside it.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "collectives/sum.h"
#include "core/bytes.h"
#include "sparse/row_optimizer.h"
#include "sparse/row_table.h"
#include "strategies/strategy.h"

namespace tutti::parameter_server {

// A gradient for each of these keys, one after the other.
struct RowSum {
  std::span<const uint64_t> keys;
  std::span<const float> rows;  // nothing when only costs count
};

class RowShard {
 public:
  explicit RowShard(Context& context);

  size_t width() const { return width_; }
  size_t stride() const { return width_ + optimizer_.state_width(width_); }  // with the state
  size_t element_bytes() const;                                              // of a gradient
  const RowTable& table() const { return table_; }

  // Where the keys of a message arrive, and its gradients; slots are numbered by the shard.
  std::span<uint64_t> keys(size_t slot, size_t count);
  std::span<std::byte> gradients(size_t slot, size_t count);
  std::span<const uint64_t> keys(size_t slot) const;

  // Adds up the gradients in the slots in this order, key by key, times `factor`, and takes an
  // optimizer step on each row that has one. Returns the sum; it stays until the first slot is
  // freed or the next one is added up.
  RowSum apply(std::span<const size_t> slots, double factor, double rate);
  // Takes that step with a sum that somebody else has added up.
  void apply(const RowSum& sum, double rate);

  // The rows of these keys, one after the other; `kept`: as they were when keep() was called.
  void read(std::span<const uint64_t> keys, bool kept, std::span<float> rows);
  void keep();
  size_t kept() const { return kept_rows_; }  // rows that there were then

  // Values and state of all rows, in the order of the table's keys, and then, if `kept`, what was
  // kept of the first ones.
  Buffer<float> save(bool kept);
  // Begins again with these; false: that is not the size that they have.
  bool restore(std::span<const uint64_t> keys, size_t kept, std::span<const float> saved);

 private:
  struct Slot {
    Buffer<uint64_t> keys;
    Buffer<std::byte> gradients;
    size_t count = 0;
  };
  struct RowSums {
    std::vector<uint64_t> keys;
    std::vector<std::byte> rows;
  };
  // To what sums_ has.
  void add(std::span<const uint64_t> keys, std::span<const std::byte> rows);
  RowSum sum_of(std::span<const size_t> slots, double factor);
  void read_kept(std::span<const uint64_t> keys, std::span<float> rows) const;
  void step(const RowSum& sum, double rate);
  void charge_steps(size_t gradients);
  RowTable make_table() const;
  Slot& slot(size_t index);
  void charge(double floats, size_t keys);

  Context& context_;
  Arithmetic arithmetic_;
  SumKind kind_;
  size_t width_;
  RowOptimizer optimizer_;
  RowTable table_;
  std::deque<Slot> slots_;
  RowSums sums_, more_sums_;
  std::vector<float> rounded_;  // exact sums
  std::vector<float> kept_;     // of the rows that there were then
  size_t kept_rows_ = 0;
};

}  // namespace tutti::parameter_server

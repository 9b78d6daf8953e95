// A server's part of a sparse model: the rows whose keys fall to it, made when they are first
// updated, each with the optimizer's state beside it.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "collectives/exact_sum.h"
#include "core/bytes.h"
#include "sparse/row_optimizer.h"
#include "sparse/row_table.h"
#include "strategies/strategy.h"

namespace tutti::parameter_server {

class RowShard {
 public:
  explicit RowShard(Context& context);

  size_t width() const { return table_.width(); }
  size_t element_bytes() const;  // of a gradient
  const RowTable& table() const { return table_; }

  // Where the keys of a message arrive, and its gradients; slots are numbered by the shard.
  std::span<uint64_t> keys(size_t slot, size_t count);
  std::span<std::byte> gradients(size_t slot, size_t count);
  std::span<const uint64_t> keys(size_t slot) const;

  // Adds up the gradients in the slots in this order, key by key, times `factor`, and takes an
  // optimizer step on each row that has one.
  void apply(std::span<const size_t> slots, double factor, double rate);

  // The rows of these keys, one after the other; `kept`: as they were when keep() was called.
  void read(std::span<const uint64_t> keys, bool kept, std::span<float> rows);
  void keep();

 private:
  struct Slot {
    Buffer<uint64_t> keys;
    Buffer<std::byte> gradients;
    size_t count = 0;
  };
  template <class T>
  struct Sums {
    std::vector<uint64_t> keys;
    std::vector<T> rows;
  };
  template <class T>
  void add(Sums<T>& sums, Sums<T>& scratch, std::span<const uint64_t> keys,
           std::span<const T> rows);
  template <class T>
  void add_up(Sums<T>& sums, Sums<T>& scratch, std::span<const size_t> slots);
  Slot& slot(size_t index);
  void charge(double floats, size_t keys);

  Context& context_;
  bool exact_;
  RowOptimizer optimizer_;
  RowTable table_;
  std::deque<Slot> slots_;
  Sums<float> floats_, more_floats_;
  Sums<ExactSum> exact_sums_, more_exact_sums_;
  std::vector<float> kept_;  // of the rows that there were then
};

}  // namespace tutti::parameter_server

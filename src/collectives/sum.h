// A sum of vectors of floats: plain, or exact (exact_sum.h) and then bitwise the same whoever adds
// which terms first. Who sums needs not know which of them it is.
#pragma once

#include <cstddef>
#include <span>

#include "collectives/reduction.h"
#include "core/arithmetic.h"
#include "core/bytes.h"
#include "core/range.h"

namespace tutti {

enum class SumKind { kPlain, kExact };
// How two sums become one, and what an element of them takes.
const Reduction& reduction_of(SumKind kind);

class Sum {
 public:
  // Of `count` values, in memory of its own or in that which is given.
  Sum(SumKind kind, size_t count, Arithmetic arithmetic);
  Sum(SumKind kind, std::span<std::byte> memory, Arithmetic arithmetic);
  // The one that `memory` has.
  static Sum of(SumKind kind, std::span<std::byte> memory, Arithmetic arithmetic);

  size_t size() const { return memory_.size() / reduction().element_bytes; }
  const Reduction& reduction() const { return reduction_of(kind_); }

  void clear() { begun_ = false; }
  bool is_empty() const { return !begun_; }  // nothing was added
  void add(std::span<const float> term) { add(term, 0); }
  void add(std::span<const float> term, size_t begin);  // to the values from there on
  void add(const Sum& other);
  // The values to send, or to sum with others: zeros where nothing was added.
  std::span<std::byte> bytes();
  std::span<std::byte> bytes(Range range);
  // Where a whole sum arrives that somebody else has sent; it is this one from then on.
  std::span<std::byte> landing();
  // The sum as floats; an exact one is rounded into `rounded`, which has the same size.
  std::span<const float> values(std::span<float> rounded);

 private:
  SumKind kind_;
  Arithmetic arithmetic_;
  bool begun_ = false;  // the memory has a sum
  Buffer<std::byte> own_;
  std::span<std::byte> memory_;
};

}  // namespace tutti

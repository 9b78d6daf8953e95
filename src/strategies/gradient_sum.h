// The sum of a node's gradients over the parts of a step: plain, or exact with task.deterministic.
// Its time is charged.
#pragma once

#include "collectives/sum.h"
#include "strategies/strategy.h"

namespace tutti {

SumKind sum_kind(const TaskConfig& task);
size_t sum_element_bytes(const TaskConfig& task);

class GradientSum {
 public:
  // Of what lies in `gradients` whenever it is added. The sum lies in `memory` if that is given.
  GradientSum(Context& context, std::span<float> gradients, std::span<std::byte> memory = {});

  void clear() { sum_.clear(); }
  void add();
  // What is sent or summed with others: zeros where this node had no sample.
  std::span<std::byte> bytes() { return sum_.bytes(); }
  std::span<std::byte> bytes(Range range) { return sum_.bytes(range); }
  // The sum as floats; an exact one is rounded, in the place of the gradients.
  std::span<const float> values();

 private:
  Context& context_;
  bool exact_;
  std::span<float> gradients_;
  Sum sum_;
};

}  // namespace tutti

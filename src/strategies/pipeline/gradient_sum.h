// The sum of a stage's gradients over the micro-batches of a step: plain, or exact with
// task.deterministic.
#pragma once

#include "collectives/exact_sum.h"
#include "models/stage.h"
#include "strategies/strategy.h"

namespace tutti {

class GradientSum {
 public:
  GradientSum(Context& context, StageModel& model);

  void clear() { begun_ = false; }
  // Adds the gradients that the model has now.
  void add();
  // What is sent or summed with others: zeros where this node had no sample.
  std::span<std::byte> bytes();
  // The sum as floats, where an exact one is rounded to: in the place of the model's gradients.
  std::span<const float> values();

 private:
  Context& context_;
  StageModel& model_;
  bool exact_;
  Arithmetic arithmetic_;
  bool begun_ = false;
  Buffer<float> sum_;
  Buffer<ExactSum> exact_sum_;
};

}  // namespace tutti

// Optimizers on single rows, with their state beside each row: only rows with a gradient change.
//
// sgd and adagrad leave everything alone whose gradient is zero, so on rows they are what they are
// on all parameters at once. momentum and adam would also move rows that no batch touches, by the
// memory of earlier gradients; here such rows rest until they are touched again ("lazy", as other
// systems call it), and Adam's correction counts the steps of the row.
#pragma once

#include <span>

#include "optimizers/optimizer.h"

namespace tutti {

class RowOptimizer {
 public:
  // Throws ConfigError, naming the setting, where it makes no sense on rows.
  explicit RowOptimizer(const OptimizerConfig& config);

  // True when rows without a gradient would not have changed anyway.
  static bool equals_dense(const OptimizerConfig& config);

  size_t state_width(size_t width) const;  // floats beside a row; all zero at first
  void step(std::span<float> row, std::span<float> state, std::span<const float> g,
            double lr) const;

 private:
  enum class Kind { kSgd, kMomentum, kAdagrad, kAdam } kind_;
  double beta1_ = 0, beta2_ = 0;
  float momentum_ = 0, eps_ = 0;
};

}  // namespace tutti

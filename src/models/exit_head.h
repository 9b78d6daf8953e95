// An exit of a model: classes straight from the activations between two of its layers, by one
// affine layer with parameters of its own.
//
// Free of LibTorch and small beside the layers around it. Sums are taken in one order, so that the
// result is bitwise the same everywhere.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/arithmetic.h"

namespace tutti {

class ExitHead {
 public:
  // `first_parameter` is what random numbers are keyed by: beyond the parameters of the model.
  ExitHead(size_t values, size_t classes, uint64_t seed, uint32_t first_parameter,
           Arithmetic arithmetic);

  size_t parameter_count() const { return (values_ + 1) * classes_; }
  double forward_flops() const;  // of a sample; backward costs twice as much
  std::span<float> parameters() { return parameters_; }
  std::span<float> gradients() { return gradients_; }

  // The scores of each row of `activations`; they stay until the next call.
  std::span<const float> forward(std::span<const float> activations);
  // After forward(), with the gradient by the scores: overwrites the gradients of the parameters
  // and writes those by the activations to `slope`.
  void backward(std::span<const float> activations, std::span<const float> score_slopes,
                std::span<float> slope);

 private:
  size_t values_, classes_;
  std::vector<float> parameters_, gradients_;  // weights by value and class, then biases
  std::vector<float> scores_;
};

}  // namespace tutti

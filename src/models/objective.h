// What a model is trained for and measured by: the loss over the scores of a batch, what counts as
// right, and the penalty on large weights.
#pragma once

#include <span>

#include "data/dataset.h"
#include "models/architecture.h"

namespace tutti {

class Objective {
 public:
  // The architecture must outlive it.
  explicit Objective(const Architecture& architecture) : architecture_(architecture) {}

  // Sum of the losses of `size` samples of the batch from `begin` on, given their scores; that of a
  // sequence is the mean over its positions. Writes scale * gradient to `slopes` unless empty.
  double loss(std::span<const float> scores, const Batch& batch, size_t begin, size_t size,
              float scale, std::span<float> slopes) const;
  // Samples among them that are predicted right; 0 where numbers are predicted.
  double correct(std::span<const float> scores, const Batch& batch, size_t begin,
                 size_t size) const;

  // Each sample brings its own penalty on the weights (not the biases), so that shares of a batch
  // add up to the whole. Adds factor * its gradient to those of this layer.
  void penalise(const Layer& layer, double factor, std::span<const float> parameters,
                std::span<float> gradients) const;
  double penalty(std::span<const float> parameters) const;  // of one sample

 private:
  std::span<const int32_t> labels_of(const Batch& batch, size_t begin, size_t size) const;

  const Architecture& architecture_;
};

}  // namespace tutti

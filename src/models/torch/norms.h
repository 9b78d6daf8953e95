// Norms within a sample: of groups of channels, and of the vector at each position.
// Norms over samples: batch norm.
#pragma once

#include <span>

#include "models/torch/group_norm.h"
#include "models/torch/operation.h"
#include "models/torch/weights.h"

namespace tutti {

class GroupNorm : public Operation {
 public:
  GroupNorm(const Layer& layer, Weights weights);
  at::Tensor forward(const at::Tensor& x, const Pass& pass) override;
  at::Tensor backward(const at::Tensor& slope, bool input_needed) override;

 private:
  GroupNormShape shape_;
  Weights w_;
  GroupStatistics statistics_;
  at::Tensor x_;
  at::Tensor y_, x_slope_;  // in memory order: sample, height, width, channel
};

// Ioffe and Szegedy, "Batch normalization", ICML 2015, over ghost batches: the samples of a batch
// are normalised so many at a time, the rest by itself.
class BatchNorm : public Operation {
 public:
  // Running mean and variance, or in place of their gradients how far they are off.
  struct Running {
    std::span<float> mean, variance;
  };
  BatchNorm(const Layer& layer, Weights weights, Running running, Running running_slope);
  at::Tensor forward(const at::Tensor& x, const Pass& pass) override;
  at::Tensor backward(const at::Tensor& slope, bool input_needed) override;

 private:
  // Ghost batches of the same size, one after the other.
  struct Ghosts {
    GroupNormShape shape;  // each is a "sample" and has the pixels of all samples in it
    size_t first = 0;      // value of x at which they begin
    size_t samples = 0;    // in each
    GroupStatistics statistics;
  };
  void divide(size_t samples);
  void take_running_slopes();

  size_t pixels_, channels_, ghost_batch_;
  Weights w_;
  Running running_, running_slope_;
  std::vector<Ghosts> ghosts_;
  float scale_ = 1;
  at::Tensor x_;
  at::Tensor y_, x_slope_;  // in memory order: sample, height, width, channel
};

class LayerNorm : public Operation {
 public:
  explicit LayerNorm(Weights weights);
  at::Tensor forward(const at::Tensor& x, const Pass& pass) override;
  at::Tensor backward(const at::Tensor& slope, bool input_needed) override;

 private:
  Weights w_;
  at::Tensor x_, mean_, inverse_;
};

}  // namespace tutti

// Norms within a sample: of groups of channels, and of the vector at each position.
#pragma once

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

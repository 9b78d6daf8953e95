// Convolution with a square kernel on activations with channels last.
#pragma once

#include <array>

#include "models/torch/operation.h"
#include "models/torch/patches.h"
#include "models/torch/weights.h"

namespace tutti {

class Convolution : public Operation {
 public:
  Convolution(const Layer& layer, Weights weights);
  at::Tensor forward(const at::Tensor& x, const Pass& pass) override;
  at::Tensor backward(const at::Tensor& slope, bool input_needed) override;

 private:
  at::Tensor backward_by_library(const at::Tensor& slope, bool input_needed);
  at::Tensor backward_by_patches(const at::Tensor& slope);

  PatchShape shape_;
  std::array<int64_t, 2> stride_, padding_;
  Weights weights_;
  std::vector<float> patches_;
  at::Tensor x_;
  at::Tensor x_slope_;  // in memory order: sample, height, width, channel
};

}  // namespace tutti

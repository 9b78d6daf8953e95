// Convolution with a square kernel, stride 1, no padding, on activations with channels last.
#pragma once

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
  void backward_weights(const at::Tensor& slope);
  at::Tensor backward_all(const at::Tensor& slope);

  PatchShape shape_;
  Weights weights_;
  std::vector<float> patches_;
  at::Tensor x_;
  at::Tensor x_slope_;  // in memory order: sample, height, width, channel
};

}  // namespace tutti

#include "models/torch/sharding.h"

#include <ATen/ops/sum.h>

#include <utility>

#include "models/torch/tensors.h"

namespace tutti {
namespace {

at::Tensor summed(ShardGroup& group, const at::Tensor& tensor) {
  at::Tensor result = in_memory_order(tensor);
  group.sum(values(result));
  return result;
}

at::Tensor channels_at_the_end(const at::Tensor& tensor) {
  return tensor.dim() == 4 ? tensor.permute({0, 2, 3, 1}) : tensor;
}

}  // namespace

Spread::Spread(ShardGroup& group) : group_(group) {}

at::Tensor Spread::forward(const at::Tensor& x, const Pass&) { return x; }

at::Tensor Spread::backward(const at::Tensor& slope, bool input_needed) {
  return input_needed ? summed(group_, slope) : at::Tensor();
}

Combine::Combine(ShardGroup& group, at::Tensor bias, at::Tensor bias_slope)
    : group_(group), bias_(std::move(bias)), bias_slope_(std::move(bias_slope)) {}

at::Tensor Combine::forward(const at::Tensor& x, const Pass&) {
  const at::Tensor y = summed(group_, x);
  if (bias_.defined()) channels_at_the_end(y).add_(bias_);
  return y;
}

at::Tensor Combine::backward(const at::Tensor& slope, bool) {
  if (bias_.defined())
    at::sum_out(bias_slope_, channels_at_the_end(slope).reshape({-1, bias_.size(0)}), 0);
  return slope;
}

}  // namespace tutti

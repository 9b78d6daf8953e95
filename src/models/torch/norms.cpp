#include "models/torch/norms.h"

#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>

#include <utility>

#include "models/torch/tensors.h"

namespace tutti {
namespace {

constexpr double kLayerNormEpsilon = 1e-5;  // as PyTorch

}  // namespace

GroupNorm::GroupNorm(const Layer& layer, Weights weights)
    : shape_{.samples = 0,
             .pixels = static_cast<size_t>(layer.input[1] * layer.input[2]),
             .channels = static_cast<size_t>(layer.input[0]),
             .groups = static_cast<size_t>(layer.groups)},
      w_(std::move(weights)) {}

at::Tensor GroupNorm::forward(const at::Tensor& x, const Pass&) {
  x_ = x.contiguous(kChannelsLast);
  shape_.samples = static_cast<size_t>(x.size(0));
  resized(y_, {x.size(0), x.size(2), x.size(3), x.size(1)});
  group_norm(shape_, x_.data_ptr<float>(), w_.weight.data_ptr<float>(), w_.bias.data_ptr<float>(),
             y_.data_ptr<float>(), statistics_);
  return y_.permute({0, 3, 1, 2});
}

at::Tensor GroupNorm::backward(const at::Tensor& slope, bool) {
  const at::Tensor output = slope.contiguous(kChannelsLast);
  resized(x_slope_, y_.sizes());
  group_norm_backward(shape_, x_.data_ptr<float>(), output.data_ptr<float>(),
                      w_.weight.data_ptr<float>(), statistics_, x_slope_.data_ptr<float>(),
                      w_.weight_slope.data_ptr<float>(), w_.bias_slope.data_ptr<float>());
  return x_slope_.permute({0, 3, 1, 2});
}

LayerNorm::LayerNorm(Weights weights) : w_(std::move(weights)) {}

at::Tensor LayerNorm::forward(const at::Tensor& x, const Pass&) {
  x_ = x.contiguous();
  at::Tensor y;
  std::tie(y, mean_, inverse_) =
      at::native_layer_norm(x_, w_.weight.sizes(), w_.weight, w_.bias, kLayerNormEpsilon);
  return y;
}

at::Tensor LayerNorm::backward(const at::Tensor& slope, bool) {
  const auto slopes =
      at::native_layer_norm_backward(slope.contiguous(), x_, w_.weight.sizes(), mean_, inverse_,
                                     w_.weight, w_.bias, {true, true, true});
  w_.weight_slope.copy_(std::get<1>(slopes));
  w_.bias_slope.copy_(std::get<2>(slopes));
  return std::get<0>(slopes);
}

}  // namespace tutti

#include "models/torch/convolution.h"

#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/sum.h>

#include <algorithm>
#include <array>
#include <utility>

#include "models/torch/gemm.h"
#include "models/torch/tensors.h"

namespace tutti {
namespace {

constexpr std::array<int64_t, 2> kZero = {0, 0}, kOne = {1, 1};
constexpr int64_t kPatchFloats = 128 << 10;  // half a MiB: stays in a core's cache

PatchShape patch_shape(const Layer& layer) {
  return {.height = static_cast<size_t>(layer.input[1]),
          .width = static_cast<size_t>(layer.input[2]),
          .channels = static_cast<size_t>(layer.input[0]),
          .kernel = static_cast<size_t>(layer.kernel)};
}

c10::optional<at::Tensor> optional_bias(const Weights& weights) {
  if (weights.bias.defined()) return weights.bias;
  return c10::nullopt;
}

}  // namespace

Convolution::Convolution(const Layer& layer, Weights weights)
    : shape_(patch_shape(layer)),
      stride_{layer.stride, layer.stride},
      padding_{layer.padding, layer.padding},
      weights_(std::move(weights)) {}

at::Tensor Convolution::forward(const at::Tensor& x, const Pass&) {
  x_ = x.contiguous(kChannelsLast);
  return at::convolution(x_, weights_.weight, optional_bias(weights_), stride_, padding_, kOne,
                         false, kZero, 1);
}

// Patches are for plain convolutions. In the first layer, few input channels make short ones, for
// which oneDNN is faster.
at::Tensor Convolution::backward(const at::Tensor& slope, bool input_needed) {
  const bool is_plain = stride_ == kOne && padding_ == kZero;
  if (input_needed && is_plain) return backward_by_patches(slope.contiguous(kChannelsLast));
  return backward_by_library(slope, input_needed);
}

at::Tensor Convolution::backward_by_library(const at::Tensor& slope, bool input_needed) {
  const bool has_bias = weights_.bias.defined();
  const auto sizes =
      has_bias ? c10::optional<at::IntArrayRef>(weights_.bias.sizes()) : c10::nullopt;
  const auto slopes =
      at::convolution_backward(slope, x_, weights_.weight, sizes, stride_, padding_, kOne, false,
                               kZero, 1, {input_needed, true, has_bias});
  weights_.weight_slope.copy_(std::get<1>(slopes));
  if (has_bias) weights_.bias_slope.copy_(std::get<2>(slopes));
  return std::get<0>(slopes);
}

// By matrix products over the patches of a few samples at a time. oneDNN rounds both numbers of
// channels up to multiples of 8 and takes 1.4 times as long with LeNet's 20 and 50.
at::Tensor Convolution::backward_by_patches(const at::Tensor& slope) {
  const int64_t samples = slope.size(0), outputs = slope.size(1);
  const auto rows = static_cast<int64_t>(shape_.rows());
  const auto columns = static_cast<int64_t>(shape_.columns());
  const int64_t most = std::max<int64_t>(1, kPatchFloats / (rows * columns));
  patches_.resize(static_cast<size_t>(std::min(most, samples) * rows * columns));
  resized(x_slope_, {samples, x_.size(2), x_.size(3), x_.size(1)});
  for (int64_t first = 0; first < samples; first += most) {
    const int64_t count = std::min(most, samples - first);
    const auto n = static_cast<size_t>(count);
    const size_t offset = static_cast<size_t>(first) * shape_.image();
    const float* part = slope.data_ptr<float>() + first * rows * outputs;
    gather_patches(shape_, n, x_.data_ptr<float>() + offset, patches_.data());
    multiply(outputs, columns, count * rows, Turn::kYes, part, Turn::kNo, patches_.data(),
             weights_.weight_slope.data_ptr<float>(), /*add=*/first > 0);
    multiply(count * rows, columns, outputs, Turn::kNo, part, Turn::kNo,
             weights_.weight.data_ptr<float>(), patches_.data());
    scatter_patches(shape_, n, patches_.data(), x_slope_.data_ptr<float>() + offset);
  }
  if (weights_.bias.defined()) at::sum_out(weights_.bias_slope, slope, {0, 2, 3});
  return x_slope_.permute({0, 3, 1, 2});
}

}  // namespace tutti

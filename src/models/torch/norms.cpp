#include "models/torch/norms.h"

#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/torch/tensors.h"

namespace tutti {

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

BatchNorm::BatchNorm(const Layer& layer, Weights weights, Running running, Running running_slope)
    : pixels_(static_cast<size_t>(layer.input[1] * layer.input[2])),
      channels_(static_cast<size_t>(layer.input[0])),
      ghost_batch_(static_cast<size_t>(layer.ghost_batch)),
      w_(std::move(weights)),
      running_(running),
      running_slope_(running_slope) {}

void BatchNorm::divide(size_t samples) {
  ghosts_.clear();
  const size_t whole = samples / ghost_batch_, rest = samples % ghost_batch_;
  const auto add = [&](size_t count, size_t size, size_t before) {
    if (count == 0 || size == 0) return;
    ghosts_.push_back({.shape = {.samples = count,
                                 .pixels = size * pixels_,
                                 .channels = channels_,
                                 .groups = channels_},
                       .first = before * pixels_ * channels_,
                       .samples = size,
                       .statistics = {}});
  };
  add(whole, ghost_batch_, 0);
  add(1, rest, whole * ghost_batch_);
}

at::Tensor BatchNorm::forward(const at::Tensor& x, const Pass& pass) {
  x_ = x.contiguous(kChannelsLast);
  resized(y_, {x.size(0), x.size(2), x.size(3), x.size(1)});
  const float* in = x_.data_ptr<float>();
  const float *weight = w_.weight.data_ptr<float>(), *bias = w_.bias.data_ptr<float>();
  float* out = y_.data_ptr<float>();
  if (pass.training) {
    scale_ = pass.scale;
    divide(static_cast<size_t>(x.size(0)));
    for (Ghosts& ghosts : ghosts_)
      group_norm(ghosts.shape, in + ghosts.first, weight, bias, out + ghosts.first,
                 ghosts.statistics);
  } else {
    GroupStatistics given;
    given.mean.assign(running_.mean.begin(), running_.mean.end());
    // Where workers push it by old distances a variance might fall below zero. NaN stays NaN.
    for (const float variance : running_.variance) {
      const double spread = std::max(static_cast<double>(variance), 0.0);
      given.inverse.push_back(static_cast<float>(1 / std::sqrt(spread + kNormEpsilon)));
    }
    norm_by({static_cast<size_t>(x.size(0)), pixels_, channels_, channels_}, in, weight, bias,
            given, out);
  }
  return y_.permute({0, 3, 1, 2});
}

at::Tensor BatchNorm::backward(const at::Tensor& slope, bool) {
  const at::Tensor output = slope.contiguous(kChannelsLast);
  resized(x_slope_, y_.sizes());
  const std::span weight_slope(w_.weight_slope.data_ptr<float>(), channels_);
  const std::span bias_slope(w_.bias_slope.data_ptr<float>(), channels_);
  std::fill(weight_slope.begin(), weight_slope.end(), 0.0F);
  std::fill(bias_slope.begin(), bias_slope.end(), 0.0F);
  std::vector<float> weight_part(channels_), bias_part(channels_);
  for (const Ghosts& ghosts : ghosts_) {
    group_norm_backward(ghosts.shape, x_.data_ptr<float>() + ghosts.first,
                        output.data_ptr<float>() + ghosts.first, w_.weight.data_ptr<float>(),
                        ghosts.statistics, x_slope_.data_ptr<float>() + ghosts.first,
                        weight_part.data(), bias_part.data());
    for (size_t c = 0; c < channels_; ++c) weight_slope[c] += weight_part[c];
    for (size_t c = 0; c < channels_; ++c) bias_slope[c] += bias_part[c];
  }
  take_running_slopes();
  return x_slope_.permute({0, 3, 1, 2});
}

// The variance that is followed is the unbiased one, as PyTorch's; a single value has none.
void BatchNorm::take_running_slopes() {
  for (size_t c = 0; c < channels_; ++c) {
    double mean = 0, variance = 0;
    for (const Ghosts& ghosts : ghosts_) {
      const auto samples = static_cast<double>(ghosts.samples);
      const auto values = static_cast<double>(ghosts.shape.pixels);
      const double unbiased = values / (values - 1);
      for (size_t g = 0; g < ghosts.shape.samples; ++g) {
        const auto inverse = static_cast<double>(ghosts.statistics.inverse[g * channels_ + c]);
        const double spread = std::max(1 / (inverse * inverse) - kNormEpsilon, 0.0);
        mean += samples * (static_cast<double>(running_.mean[c]) -
                           static_cast<double>(ghosts.statistics.mean[g * channels_ + c]));
        if (values > 1)
          variance += samples * (static_cast<double>(running_.variance[c]) - unbiased * spread);
      }
    }
    running_slope_.mean[c] = static_cast<float>(static_cast<double>(scale_) * mean);
    running_slope_.variance[c] = static_cast<float>(static_cast<double>(scale_) * variance);
  }
}

LayerNorm::LayerNorm(Weights weights) : w_(std::move(weights)) {}

at::Tensor LayerNorm::forward(const at::Tensor& x, const Pass&) {
  x_ = x.contiguous();
  at::Tensor y;
  std::tie(y, mean_, inverse_) =
      at::native_layer_norm(x_, w_.weight.sizes(), w_.weight, w_.bias, kNormEpsilon);
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

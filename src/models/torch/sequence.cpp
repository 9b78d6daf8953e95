#include "models/torch/sequence.h"

#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/sum.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.h"
#include "models/torch/gemm.h"

namespace tutti {

Embedding::Embedding(const Layer& layer, Weights weights)
    : w_(std::move(weights)), rows_(layer.part), whole_(layer.whole) {
  if (!rows_.empty()) return;
  whole_ = static_cast<size_t>(w_.weight.size(0));
  rows_ = {0, whole_};
}

at::Tensor Embedding::forward(const at::Tensor& x, const Pass&) {
  const auto codes = static_cast<float>(whole_);
  const auto width = static_cast<size_t>(w_.weight.size(1));
  resized(y_, {x.size(0), x.size(1), w_.weight.size(1)});
  codes_.clear();
  const float* values = x.data_ptr<float>();
  float* out = y_.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    if (!(values[i] >= 0 && values[i] < codes))
      throw DataError(fmt::format("code {} is outside 0 to {}; the data does not fit the model",
                                  values[i], codes - 1));
    codes_.push_back(static_cast<size_t>(values[i]));
    if (has(codes_.back()))
      out = std::copy_n(row_of(w_.weight, codes_.back()), width, out);
    else
      out = std::fill_n(out, width, 0.0F);
  }
  return y_;
}

at::Tensor Embedding::backward(const at::Tensor& slope, bool) {
  w_.weight_slope.zero_();
  const auto width = static_cast<size_t>(w_.weight.size(1));
  const float* from = slope.data_ptr<float>();
  for (size_t code : codes_) {
    if (has(code)) {
      float* to = row_of(w_.weight_slope, code);
      for (size_t i = 0; i < width; ++i) to[i] += from[i];
    }
    from += width;
  }
  return {};
}

float* Embedding::row_of(const at::Tensor& table, size_t code) const {
  return table.data_ptr<float>() + (code - rows_.begin) * static_cast<size_t>(w_.weight.size(1));
}

Position::Position(Weights weights) : w_(std::move(weights)) {}

at::Tensor Position::forward(const at::Tensor& x, const Pass&) { return x.add_(w_.weight); }

at::Tensor Position::backward(const at::Tensor& slope, bool) {
  at::sum_out(w_.weight_slope, slope, 0);
  return slope;
}

Attention::Attention(const Layer& layer)
    : heads_(layer.groups), positions_(layer.input[0]), width_(layer.output[1] / layer.groups) {}

at::Tensor Attention::forward(const at::Tensor& x, const Pass&) {
  const int64_t samples = x.size(0), size = positions_ * width_, square = positions_ * positions_;
  resized(qkv_, {3, samples, heads_, positions_, width_})
      .copy_(x.view({samples, positions_, 3, heads_, width_}).permute({2, 0, 3, 1, 4}));
  qkv_.select(0, 0).mul_(1 / std::sqrt(static_cast<double>(width_)));
  resized(scores_, {samples * heads_, positions_, positions_});
  resized(shares_, scores_.sizes());
  resized(mixed_, {samples, heads_, positions_, width_});
  const float* q = qkv_.data_ptr<float>();
  const float *k = q + samples * heads_ * size, *v = k + samples * heads_ * size;
  for (int64_t i = 0; i < samples * heads_; ++i) {
    float* scores = scores_.data_ptr<float>() + i * square;
    multiply(positions_, positions_, width_, Turn::kNo, q + i * size, Turn::kYes, k + i * size,
             scores);
    for (int64_t row = 0; row < positions_; ++row)
      std::fill(scores + row * positions_ + row + 1, scores + (row + 1) * positions_,
                -std::numeric_limits<float>::infinity());
  }
  at::_softmax_out(shares_, scores_, -1, false);
  for (int64_t i = 0; i < samples * heads_; ++i)
    multiply(positions_, width_, positions_, Turn::kNo, shares_.data_ptr<float>() + i * square,
             Turn::kNo, v + i * size, mixed_.data_ptr<float>() + i * size);
  resized(y_, {samples, positions_, heads_ * width_})
      .view({samples, positions_, heads_, width_})
      .copy_(mixed_.permute({0, 2, 1, 3}));
  return y_;
}

at::Tensor Attention::backward(const at::Tensor& slope, bool) {
  const int64_t samples = slope.size(0), size = positions_ * width_;
  const int64_t square = positions_ * positions_, part = samples * heads_ * size;
  resized(mixed_slope_, mixed_.sizes())
      .copy_(slope.view({samples, positions_, heads_, width_}).permute({0, 2, 1, 3}));
  resized(shares_slope_, shares_.sizes());
  resized(scores_slope_, shares_.sizes());
  resized(qkv_slope_, qkv_.sizes());
  const float* q = qkv_.data_ptr<float>();
  const float *k = q + part, *v = k + part;
  float* q_slope = qkv_slope_.data_ptr<float>();
  float *k_slope = q_slope + part, *v_slope = k_slope + part;
  for (int64_t i = 0; i < samples * heads_; ++i) {
    const float* mixed_slope = mixed_slope_.data_ptr<float>() + i * size;
    multiply(positions_, width_, positions_, Turn::kYes, shares_.data_ptr<float>() + i * square,
             Turn::kNo, mixed_slope, v_slope + i * size);
    multiply(positions_, positions_, width_, Turn::kNo, mixed_slope, Turn::kYes, v + i * size,
             shares_slope_.data_ptr<float>() + i * square);
  }
  at::_softmax_backward_data_out(scores_slope_, shares_slope_, shares_, -1, at::kFloat);
  for (int64_t i = 0; i < samples * heads_; ++i) {
    const float* scores_slope = scores_slope_.data_ptr<float>() + i * square;
    multiply(positions_, width_, positions_, Turn::kNo, scores_slope, Turn::kNo, k + i * size,
             q_slope + i * size);
    multiply(positions_, width_, positions_, Turn::kYes, scores_slope, Turn::kNo, q + i * size,
             k_slope + i * size);
  }
  qkv_slope_.select(0, 0).mul_(1 / std::sqrt(static_cast<double>(width_)));
  resized(x_slope_, {samples, positions_, 3 * heads_ * width_})
      .view({samples, positions_, 3, heads_, width_})
      .copy_(qkv_slope_.permute({1, 3, 0, 2, 4}));
  return x_slope_;
}

}  // namespace tutti

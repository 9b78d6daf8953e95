#include <ATen/ops/addmm.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/threshold_backward.h>

#include <array>
#include <tuple>

#include "core/error.h"
#include "models/dropout.h"
#include "models/torch/operation.h"

namespace tutti {
namespace {

// A tensor kept from step to step, so that large blocks are not returned to the system and faulted
// in again each time.
at::Tensor& resized(at::Tensor& kept, at::IntArrayRef shape) {
  if (!kept.defined())
    kept = at::empty(shape, at::kFloat);
  else
    kept.resize_(shape);
  return kept;
}

// The parameter as PyTorch sees it, over memory that the caller owns. For channels last the strides
// say so: a copy to that format would leave the flat buffer.
at::Tensor view(const Parameter& parameter, std::span<float> flat) {
  float* data = flat.subspan(parameter.range.begin, parameter.range.size()).data();
  const std::vector<int64_t>& shape = parameter.shape;
  if (!parameter.channels_last) return at::from_blob(data, shape, at::kFloat);
  const std::array<int64_t, 4> strides = {shape[1] * shape[2] * shape[3], 1, shape[3] * shape[1],
                                          shape[1]};
  return at::from_blob(data, shape, strides, at::kFloat);
}

// Weight and bias of a layer with their gradients.
struct Weights {
  Weights(const Architecture& architecture, const Layer& layer, const ModelMemory& memory)
      : weight(view(architecture.parameters[layer.parameters.at(0)], memory.parameters)),
        bias(view(architecture.parameters[layer.parameters.at(1)], memory.parameters)),
        weight_slope(view(architecture.parameters[layer.parameters.at(0)], memory.gradients)),
        bias_slope(view(architecture.parameters[layer.parameters.at(1)], memory.gradients)) {}
  at::Tensor weight, bias, weight_slope, bias_slope;
};

class Affine : public Operation {
 public:
  explicit Affine(Weights weights) : w_(std::move(weights)) {}

  at::Tensor forward(const at::Tensor& x, const Pass&) override {
    x_ = x;
    return at::addmm_out(resized(y_, {x.size(0), w_.weight.size(0)}), w_.bias, x, w_.weight.t());
  }

  at::Tensor backward(const at::Tensor& slope, bool input_needed) override {
    at::mm_out(w_.weight_slope, slope.t(), x_);
    at::sum_out(w_.bias_slope, slope, 0);
    if (!input_needed) return {};
    return at::mm_out(resized(x_slope_, x_.sizes()), slope, w_.weight);
  }

 private:
  Weights w_;
  at::Tensor x_, y_, x_slope_;
};

class Convolution : public Operation {
 public:
  explicit Convolution(Weights weights) : w_(std::move(weights)) {}

  at::Tensor forward(const at::Tensor& x, const Pass&) override {
    x_ = x.contiguous(at::MemoryFormat::ChannelsLast);
    return at::convolution(x_, w_.weight, w_.bias, kOne, kZero, kOne, false, kZero, 1);
  }

  at::Tensor backward(const at::Tensor& slope, bool input_needed) override {
    auto [x_slope, weight_slope, bias_slope] =
        at::convolution_backward(slope, x_, w_.weight, w_.bias.sizes(), kOne, kZero, kOne, false,
                                 kZero, 1, {input_needed, true, true});
    w_.weight_slope.copy_(weight_slope);
    w_.bias_slope.copy_(bias_slope);
    return x_slope;
  }

 private:
  static constexpr std::array<int64_t, 2> kZero = {0, 0}, kOne = {1, 1};
  Weights w_;
  at::Tensor x_;
};

class Relu : public Operation {
 public:
  at::Tensor forward(const at::Tensor& x, const Pass&) override {
    y_ = x;
    return at::relu_(y_);
  }

  at::Tensor backward(const at::Tensor& slope, bool) override {
    at::Tensor result = slope;
    return at::threshold_backward_out(result, slope, y_, 0);
  }

 private:
  at::Tensor y_;
};

class MaxPool : public Operation {
 public:
  explicit MaxPool(int64_t kernel) : kernel_{kernel, kernel} {}

  at::Tensor forward(const at::Tensor& x, const Pass&) override {
    x_ = x;
    at::Tensor y;
    std::tie(y, indices_) =
        at::max_pool2d_with_indices(x, kernel_, kernel_, kZero, kOne, /*ceil_mode=*/false);
    return y;
  }

  at::Tensor backward(const at::Tensor& slope, bool) override {
    return at::max_pool2d_with_indices_backward(slope, x_, kernel_, kernel_, kZero, kOne, false,
                                                indices_);
  }

 private:
  static constexpr std::array<int64_t, 2> kZero = {0, 0}, kOne = {1, 1};
  std::array<int64_t, 2> kernel_;
  at::Tensor x_, indices_;
};

class Dropout : public Operation {
 public:
  Dropout(uint64_t seed, size_t layer, double probability)
      : seed_(seed), layer_(static_cast<uint32_t>(layer)), probability_(probability) {}

  at::Tensor forward(const at::Tensor& x, const Pass& pass) override {
    if (!pass.training) return x;
    resized(mask_, x.sizes());
    const auto width = static_cast<size_t>(x.numel() / x.size(0));
    float* row = mask_.data_ptr<float>();
    for (uint32_t sample : pass.batch.samples) {
      fill_dropout_mask({seed_, pass.batch.step, sample, layer_}, probability_, {row, width});
      row += width;
    }
    return at::mul_out(resized(y_, x.sizes()), x, mask_);
  }

  at::Tensor backward(const at::Tensor& slope, bool) override { return slope.mul_(mask_); }

 private:
  uint64_t seed_;
  uint32_t layer_;
  double probability_;
  at::Tensor mask_, y_;
};

// Always in PyTorch's order of channel, height, width: parameters must mean the same there.
class Flatten : public Operation {
 public:
  at::Tensor forward(const at::Tensor& x, const Pass&) override {
    shape_ = x.sizes().vec();
    return x.flatten(1);
  }

  at::Tensor backward(const at::Tensor& slope, bool) override { return slope.view(shape_); }

 private:
  std::vector<int64_t> shape_;
};

}  // namespace

std::unique_ptr<Operation> make_operation(const Architecture& architecture, size_t index,
                                          const ModelMemory& memory, uint64_t seed) {
  const Layer& layer = architecture.layers.at(index);
  switch (layer.kind) {
    case LayerKind::kConvolution:
      return std::make_unique<Convolution>(Weights(architecture, layer, memory));
    case LayerKind::kAffine:
      return std::make_unique<Affine>(Weights(architecture, layer, memory));
    case LayerKind::kRelu:
      return std::make_unique<Relu>();
    case LayerKind::kMaxPool:
      return std::make_unique<MaxPool>(layer.kernel);
    case LayerKind::kDropout:
      return std::make_unique<Dropout>(seed, index, layer.probability);
    case LayerKind::kFlatten:
      return std::make_unique<Flatten>();
  }
  TUTTI_CHECK(false);
}

}  // namespace tutti

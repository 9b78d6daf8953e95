#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/threshold_backward.h>

#include <array>
#include <utility>

#include "core/error.h"
#include "models/dropout.h"
#include "models/torch/convolution.h"
#include "models/torch/gemm.h"
#include "models/torch/operation.h"
#include "models/torch/pooling.h"
#include "models/torch/weights.h"

namespace tutti {
namespace {

at::Tensor view(const Parameter& parameter, std::span<float> flat) {
  float* data = flat.subspan(parameter.range.begin, parameter.range.size()).data();
  const std::vector<int64_t>& shape = parameter.shape;
  if (!parameter.channels_last) return at::from_blob(data, shape, at::kFloat);
  const std::array<int64_t, 4> strides = {shape[1] * shape[2] * shape[3], 1, shape[3] * shape[1],
                                          shape[1]};
  return at::from_blob(data, shape, strides, at::kFloat);
}

class Affine : public Operation {
 public:
  explicit Affine(Weights weights)
      : w_(std::move(weights)), outputs_(w_.weight.size(0)), inputs_(w_.weight.size(1)) {}

  at::Tensor forward(const at::Tensor& x, const Pass&) override {
    x_ = x.contiguous();
    resized(y_, {x.size(0), outputs_}).copy_(w_.bias.expand({x.size(0), outputs_}));
    multiply(x.size(0), outputs_, inputs_, Turn::kNo, x_.data_ptr<float>(), Turn::kYes,
             w_.weight.data_ptr<float>(), y_.data_ptr<float>(), /*add=*/true);
    return y_;
  }

  at::Tensor backward(const at::Tensor& slope, bool input_needed) override {
    multiply(outputs_, inputs_, slope.size(0), Turn::kYes, slope.data_ptr<float>(), Turn::kNo,
             x_.data_ptr<float>(), w_.weight_slope.data_ptr<float>());
    at::sum_out(w_.bias_slope, slope, 0);
    if (!input_needed) return {};
    resized(x_slope_, x_.sizes());
    multiply(slope.size(0), inputs_, outputs_, Turn::kNo, slope.data_ptr<float>(), Turn::kNo,
             w_.weight.data_ptr<float>(), x_slope_.data_ptr<float>());
    return x_slope_;
  }

 private:
  Weights w_;
  int64_t outputs_, inputs_;
  at::Tensor x_, y_, x_slope_;
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

class ReluMaxPool : public Operation {
 public:
  explicit ReluMaxPool(const Layer& pool)
      : shape_{.samples = 0,
               .height = static_cast<size_t>(pool.input[1]),
               .width = static_cast<size_t>(pool.input[2]),
               .channels = static_cast<size_t>(pool.input[0]),
               .kernel = static_cast<size_t>(pool.kernel)},
        output_(pool.output) {}

  at::Tensor forward(const at::Tensor& x, const Pass&) override {
    const at::Tensor input = x.contiguous(at::MemoryFormat::ChannelsLast);
    shape_.samples = static_cast<size_t>(x.size(0));
    resized(y_, {x.size(0), output_[1], output_[2], output_[0]});
    winner_.resize(static_cast<size_t>(y_.numel()));
    relu_max_pool(shape_, input.data_ptr<float>(), y_.data_ptr<float>(), winner_.data());
    return y_.permute({0, 3, 1, 2});
  }

  at::Tensor backward(const at::Tensor& slope, bool) override {
    const at::Tensor output = slope.contiguous(at::MemoryFormat::ChannelsLast);
    const auto channels = static_cast<int64_t>(shape_.channels);
    resized(x_slope_, {slope.size(0), static_cast<int64_t>(shape_.height),
                       static_cast<int64_t>(shape_.width), channels});
    relu_max_pool_backward(shape_, output.data_ptr<float>(), winner_.data(),
                           x_slope_.data_ptr<float>());
    return x_slope_.permute({0, 3, 1, 2});
  }

 private:
  PoolShape shape_;
  std::vector<int64_t> output_;  // channels, height, width
  std::vector<int32_t> winner_;
  at::Tensor y_, x_slope_;  // in memory order: sample, height, width, channel
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

Weights::Weights(const Architecture& architecture, const Layer& layer, const ModelMemory& memory)
    : weight(view(architecture.parameters[layer.parameters.at(0)], memory.parameters)),
      bias(view(architecture.parameters[layer.parameters.at(1)], memory.parameters)),
      weight_slope(view(architecture.parameters[layer.parameters.at(0)], memory.gradients)),
      bias_slope(view(architecture.parameters[layer.parameters.at(1)], memory.gradients)) {}

at::Tensor& resized(at::Tensor& kept, at::IntArrayRef shape) {
  if (!kept.defined())
    kept = at::empty(shape, at::kFloat);
  else
    kept.resize_(shape);
  return kept;
}

std::vector<Step> make_steps(const Architecture& architecture, const ModelMemory& memory,
                             uint64_t seed) {
  const std::vector<Layer>& layers = architecture.layers;
  std::vector<Step> steps;
  const auto add = [&](std::unique_ptr<Operation> operation, size_t layer) {
    steps.push_back({std::move(operation), layer});
  };
  for (size_t i = 0; i < layers.size(); ++i) {
    switch (layers[i].kind) {
      case LayerKind::kConvolution:
        add(std::make_unique<Convolution>(layers[i], Weights(architecture, layers[i], memory)), i);
        break;
      case LayerKind::kAffine:
        add(std::make_unique<Affine>(Weights(architecture, layers[i], memory)), i);
        break;
      case LayerKind::kRelu:
        if (i + 1 == layers.size() || layers[i + 1].kind != LayerKind::kMaxPool)
          add(std::make_unique<Relu>(), i);
        break;
      case LayerKind::kMaxPool:
        TUTTI_CHECK(i > 0 && layers[i - 1].kind == LayerKind::kRelu);  // done together
        add(std::make_unique<ReluMaxPool>(layers[i]), i);
        break;
      case LayerKind::kDropout:
        add(std::make_unique<Dropout>(seed, i, layers[i].probability), i);
        break;
      case LayerKind::kFlatten:
        add(std::make_unique<Flatten>(), i);
        break;
    }
  }
  return steps;
}

}  // namespace tutti

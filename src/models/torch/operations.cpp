#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/threshold_backward.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/error.h"
#include "models/dropout.h"
#include "models/torch/convolution.h"
#include "models/torch/gemm.h"
#include "models/torch/norms.h"
#include "models/torch/operation.h"
#include "models/torch/pooling.h"
#include "models/torch/residual.h"
#include "models/torch/sequence.h"
#include "models/torch/sharding.h"
#include "models/torch/weights.h"

namespace tutti {
namespace {

at::Tensor view(const Parameter& parameter, std::span<float> flat) {
  if (flat.empty()) return {};
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
    std::vector<int64_t> shape = x.sizes().vec();
    shape.back() = outputs_;
    resized(y_, shape);
    if (w_.bias.defined()) y_.copy_(w_.bias.expand(shape));
    multiply(rows(), outputs_, inputs_, Turn::kNo, x_.data_ptr<float>(), Turn::kYes,
             w_.weight.data_ptr<float>(), y_.data_ptr<float>(), /*add=*/w_.bias.defined());
    return y_;
  }

  at::Tensor backward(const at::Tensor& slope, bool input_needed) override {
    multiply(outputs_, inputs_, rows(), Turn::kYes, slope.data_ptr<float>(), Turn::kNo,
             x_.data_ptr<float>(), w_.weight_slope.data_ptr<float>());
    if (w_.bias.defined()) at::sum_out(w_.bias_slope, slope.view({rows(), outputs_}), 0);
    if (!input_needed) return {};
    resized(x_slope_, x_.sizes());
    multiply(rows(), inputs_, outputs_, Turn::kNo, slope.data_ptr<float>(), Turn::kNo,
             w_.weight.data_ptr<float>(), x_slope_.data_ptr<float>());
    return x_slope_;
  }

 private:
  int64_t rows() const { return x_.numel() / inputs_; }  // samples, or all their positions

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

class Gelu : public Operation {
 public:
  at::Tensor forward(const at::Tensor& x, const Pass&) override {
    x_ = x;
    return at::gelu_out(resized(y_, x.sizes()), x, "none");
  }

  at::Tensor backward(const at::Tensor& slope, bool) override {
    return at::gelu_backward_out(resized(x_slope_, x_.sizes()), slope, x_, "none");
  }

 private:
  at::Tensor x_, y_, x_slope_;
};

class AveragePool : public Operation {
 public:
  at::Tensor forward(const at::Tensor& x, const Pass&) override {
    height_ = x.size(2);
    width_ = x.size(3);
    return x.mean({2, 3});
  }

  at::Tensor backward(const at::Tensor& slope, bool) override {
    resized(x_slope_, {slope.size(0), height_, width_, slope.size(1)})
        .copy_(slope.view({slope.size(0), 1, 1, slope.size(1)}).expand(x_slope_.sizes()))
        .mul_(1 / static_cast<double>(height_ * width_));
    return x_slope_.permute({0, 3, 1, 2});
  }

 private:
  int64_t height_ = 0, width_ = 0;
  at::Tensor x_slope_;  // in memory order: sample, height, width, channel
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
  Dropout(uint64_t seed, const Layer& layer)
      : seed_(seed),
        layer_(static_cast<uint32_t>(layer.number)),
        probability_(layer.probability),
        part_(layer.part),
        whole_(layer.whole) {}

  at::Tensor forward(const at::Tensor& x, const Pass& pass) override {
    if (!pass.training) return x;
    resized(mask_, x.sizes());
    const auto width = static_cast<size_t>(x.numel() / x.size(0));
    float* row = mask_.data_ptr<float>();
    for (uint32_t sample : pass.batch.samples) {
      fill({seed_, pass.batch.step, sample, layer_}, {row, width});
      row += width;
    }
    return at::mul_out(resized(y_, x.sizes()), x, mask_);
  }

  at::Tensor backward(const at::Tensor& slope, bool) override { return slope.mul_(mask_); }

 private:
  // A shard leaves out what the whole layer would.
  void fill(const DropoutKey& key, std::span<float> mask) {
    if (part_.empty()) return fill_dropout_mask(key, probability_, mask);
    whole_mask_.resize(whole_);
    fill_dropout_mask(key, probability_, whole_mask_);
    std::copy_n(whole_mask_.begin() + static_cast<ptrdiff_t>(part_.begin), mask.size(),
                mask.begin());
  }

  uint64_t seed_;
  uint32_t layer_;
  double probability_;
  Range part_;
  size_t whole_;
  std::vector<float> whole_mask_;
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
      weight_slope(view(architecture.parameters[layer.parameters.at(0)], memory.gradients)) {
  if (layer.parameters.size() < 2) return;
  bias = view(architecture.parameters[layer.parameters[1]], memory.parameters);
  bias_slope = view(architecture.parameters[layer.parameters[1]], memory.gradients);
}

at::Tensor& resized(at::Tensor& kept, at::IntArrayRef shape) {
  if (!kept.defined())
    kept = at::empty(shape, at::kFloat);
  else
    kept.resize_(shape);
  return kept;
}

namespace {

std::unique_ptr<Operation> make_combine(const Architecture& architecture, const Layer& layer,
                                        const ModelMemory& memory, ShardGroup& group) {
  if (layer.parameters.empty()) return std::make_unique<Combine>(group, at::Tensor(), at::Tensor());
  const Parameter& bias = architecture.parameters[layer.parameters[0]];
  return std::make_unique<Combine>(group, view(bias, memory.parameters),
                                   view(bias, memory.gradients));
}

std::unique_ptr<Operation> make_batch_norm(const Architecture& architecture, const Layer& layer,
                                           const ModelMemory& memory) {
  const auto running = [&](std::span<float> flat) {
    if (flat.empty()) return BatchNorm::Running{};
    const Range mean = architecture.parameters[layer.parameters.at(2)].range;
    const Range variance = architecture.parameters[layer.parameters.at(3)].range;
    return BatchNorm::Running{flat.subspan(mean.begin, mean.size()),
                              flat.subspan(variance.begin, variance.size())};
  };
  return std::make_unique<BatchNorm>(layer, Weights(architecture, layer, memory),
                                     running(memory.parameters), running(memory.gradients));
}

std::unique_ptr<Operation> make_operation(const Architecture& architecture, size_t index,
                                          const ModelMemory& memory, uint64_t seed,
                                          ShardGroup* group) {
  const Layer& layer = architecture.layers[index];
  const auto weights = [&] { return Weights(architecture, layer, memory); };
  switch (layer.kind) {
    case LayerKind::kConvolution:
      return std::make_unique<Convolution>(layer, weights());
    case LayerKind::kAffine:
      return std::make_unique<Affine>(weights());
    case LayerKind::kRelu:
      return std::make_unique<Relu>();
    case LayerKind::kGelu:
      return std::make_unique<Gelu>();
    case LayerKind::kMaxPool:
      return std::make_unique<ReluMaxPool>(layer);
    case LayerKind::kAveragePool:
      return std::make_unique<AveragePool>();
    case LayerKind::kDropout:
      return std::make_unique<Dropout>(seed, layer);
    case LayerKind::kFlatten:
      return std::make_unique<Flatten>();
    case LayerKind::kGroupNorm:
      return std::make_unique<GroupNorm>(layer, weights());
    case LayerKind::kBatchNorm:
      return make_batch_norm(architecture, layer, memory);
    case LayerKind::kLayerNorm:
      return std::make_unique<LayerNorm>(weights());
    case LayerKind::kEmbedding:
      return std::make_unique<Embedding>(layer, weights());
    case LayerKind::kPosition:
      return std::make_unique<Position>(weights());
    case LayerKind::kAttention:
      return std::make_unique<Attention>(layer);
    case LayerKind::kSpread:
      return std::make_unique<Spread>(*group);
    case LayerKind::kCombine:
      return make_combine(architecture, layer, memory, *group);
    case LayerKind::kSkip:
    case LayerKind::kAdd:
      break;  // made in pairs
    case LayerKind::kRows:
      break;  // of sparse models, which do without LibTorch
  }
  TUTTI_CHECK(false);
  return nullptr;
}

// Relu, position and add work in place. That is fine on what the layer below made and does not
// need any more, but not on what a skip keeps, nor on what a relu remembers.
bool overwrites_its_input(LayerKind kind) {
  return kind == LayerKind::kRelu || kind == LayerKind::kPosition || kind == LayerKind::kAdd;
}

bool needs_its_output(LayerKind kind) {
  return kind == LayerKind::kRelu || kind == LayerKind::kSkip;
}

}  // namespace

std::vector<Step> make_steps(const Architecture& architecture, const ModelMemory& memory,
                             uint64_t seed, ShardGroup* group) {
  const std::vector<Layer>& layers = architecture.layers;
  std::vector<Step> steps;
  std::map<size_t, std::shared_ptr<Bypass>> open;  // by the position of the skip
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerKind kind = layers[i].kind;
    TUTTI_CHECK(i == 0 || !overwrites_its_input(kind) || !needs_its_output(layers[i - 1].kind));
    std::unique_ptr<Operation> operation;
    if (kind == LayerKind::kSkip) {
      open[i] = std::make_shared<Bypass>();
      operation = std::make_unique<Skip>(open[i]);
    } else if (kind == LayerKind::kAdd) {
      operation = std::make_unique<Add>(open.at(layers[i].skip));
    } else if (kind == LayerKind::kRelu && i + 1 < layers.size() &&
               layers[i + 1].kind == LayerKind::kMaxPool) {
      continue;  // done together
    } else {
      TUTTI_CHECK(kind != LayerKind::kMaxPool || (i > 0 && layers[i - 1].kind == LayerKind::kRelu));
      operation = make_operation(architecture, i, memory, seed, group);
    }
    steps.push_back({std::move(operation), i});
  }
  return steps;
}

}  // namespace tutti

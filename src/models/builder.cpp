#include "models/builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "core/error.h"

namespace tutti {
namespace {

// What an exponential, or a norm of one value, is counted as: they are small beside the products.
constexpr double kOperationsOfExp = 10;
constexpr double kOperationsOfNorm = 8;
constexpr double kRunningRate = 0.1;  // as PyTorch's `momentum`

}  // namespace

int64_t elements(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

Builder::Builder(std::string kind, std::vector<int64_t> sample_shape)
    : shape_(std::move(sample_shape)) {
  result_.kind = std::move(kind);
  result_.input = shape_;
  for (int64_t extent : shape_)
    if (extent < 1)
      throw ConfigError("task.data", fmt::format("samples of shape [{}] are empty; task.data needs "
                                                 "at least one feature",
                                                 fmt::join(shape_, ", ")));
}

// Counts a multiplication and an addition as two operations, and the bias as one more.
Builder& Builder::convolution(int64_t channels, int64_t kernel) {
  const int64_t height = shape_.at(1) - kernel + 1, width = shape_.at(2) - kernel + 1;
  if (height < 1 || width < 1)
    throw ConfigError(
        "task.model",
        fmt::format("{} cannot take images of {} x {} pixels: a {} x {} kernel does "
                    "not fit what its layers leave of them; use mlp or larger images",
                    result_.kind, result_.input[1], result_.input[2], kernel, kernel));
  const int64_t fan_in = shape_[0] * kernel * kernel;
  const std::string name = fmt::format("conv{}", ++convolutions_);
  Layer& layer = append(LayerKind::kConvolution, name, {channels, height, width},
                        static_cast<double>((2 * fan_in + 1) * channels * height * width));
  layer.kernel = kernel;
  const Start start = uniform_over(fan_in);
  add_parameter(name + ".weight", {channels, layer.input[0], kernel, kernel}, start, true);
  add_parameter(name + ".bias", {channels}, start);
  return *this;
}

Builder& Builder::padded_convolution(const std::string& name, int64_t channels, int64_t stride) {
  constexpr int64_t kKernel = 3;
  const int64_t inputs = shape_.at(0), fan_in = inputs * kKernel * kKernel;
  const int64_t height = (shape_.at(1) - 1) / stride + 1, width = (shape_.at(2) - 1) / stride + 1;
  Layer& layer = append(LayerKind::kConvolution, name, {channels, height, width},
                        static_cast<double>(2 * fan_in * channels * height * width));
  layer.kernel = kKernel;
  layer.stride = stride;
  layer.padding = 1;
  add_parameter(name + ".weight", {channels, inputs, kKernel, kKernel}, uniform_over(fan_in), true);
  return *this;
}

Builder& Builder::max_pool(int64_t kernel) {
  const std::vector<int64_t> output = {shape_.at(0), shape_.at(1) / kernel, shape_.at(2) / kernel};
  if (elements(output) == 0)
    throw ConfigError("task.model",
                      fmt::format("{} cannot take images of {} x {} pixels: too small to pool; use "
                                  "mlp or larger images",
                                  result_.kind, result_.input[1], result_.input[2]));
  append(LayerKind::kMaxPool, fmt::format("pool{}", convolutions_), output,
         static_cast<double>(elements(output) * kernel * kernel))
      .kernel = kernel;
  return *this;
}

Builder& Builder::average_pool() {
  append(LayerKind::kAveragePool, "pool", {shape_.at(0)}, static_cast<double>(elements(shape_)));
  return *this;
}

Builder& Builder::flatten() {
  if (shape_.size() != 1) append(LayerKind::kFlatten, "flatten", {elements(shape_)}, 0);
  return *this;
}

Builder& Builder::affine(int64_t outputs) {
  return affine(fmt::format("fc{}", ++affines_), outputs);
}

Builder& Builder::affine(const std::string& name, int64_t outputs) {
  const Start start = uniform_over(shape_.back());
  append_affine(name, outputs);
  add_parameter(name + ".weight", {outputs, result_.layers.back().input.back()}, start);
  add_parameter(name + ".bias", {outputs}, start);
  return *this;
}

void Builder::append_affine(const std::string& name, int64_t outputs) {
  const int64_t inputs = shape_.back(), rows = elements(shape_) / inputs;
  std::vector<int64_t> output = shape_;
  output.back() = outputs;
  append(LayerKind::kAffine, name, std::move(output),
         static_cast<double>((2 * inputs + 1) * outputs * rows));
}

Builder& Builder::relu() {
  const std::string& below = result_.layers.back().name;
  append(LayerKind::kRelu, below + ".relu", shape_, static_cast<double>(elements(shape_)));
  return *this;
}

Builder& Builder::gelu() {
  const std::string& below = result_.layers.back().name;
  append(LayerKind::kGelu, below + ".gelu", shape_,
         kOperationsOfExp * static_cast<double>(elements(shape_)));
  return *this;
}

Builder& Builder::dropout(double probability) {
  if (probability == 0) return *this;
  append(LayerKind::kDropout, fmt::format("drop{}", ++dropouts_), shape_,
         static_cast<double>(elements(shape_)))
      .probability = probability;
  return *this;
}

Builder& Builder::group_norm(const std::string& name, int64_t groups) {
  const int64_t channels = shape_.at(0);
  append(LayerKind::kGroupNorm, name, shape_,
         kOperationsOfNorm * static_cast<double>(elements(shape_)))
      .groups = groups;
  add_parameter(name + ".weight", {channels}, {.mean = 1});
  add_parameter(name + ".bias", {channels}, {});
  return *this;
}

Builder& Builder::batch_norm(const std::string& name, int64_t ghost_batch) {
  const int64_t channels = shape_.at(0);
  append(LayerKind::kBatchNorm, name, shape_,
         kOperationsOfNorm * static_cast<double>(elements(shape_)))
      .ghost_batch = ghost_batch;
  add_parameter(name + ".weight", {channels}, {.mean = 1});
  add_parameter(name + ".bias", {channels}, {});
  add_parameter(name + ".running_mean", {channels}, {.running_rate = kRunningRate});
  add_parameter(name + ".running_var", {channels}, {.mean = 1, .running_rate = kRunningRate});
  return *this;
}

Builder& Builder::layer_norm(const std::string& name) {
  const int64_t width = shape_.back();
  append(LayerKind::kLayerNorm, name, shape_,
         kOperationsOfNorm * static_cast<double>(elements(shape_)));
  add_parameter(name + ".weight", {width}, {.mean = 1});
  add_parameter(name + ".bias", {width}, {});
  return *this;
}

Builder& Builder::embedding(const std::string& name, int64_t codes, int64_t width) {
  append(LayerKind::kEmbedding, name, {shape_.at(0), width}, 0);
  add_parameter(name + ".weight", {codes, width}, {.deviation = 1});
  return *this;
}

Builder& Builder::positions(const std::string& name) {
  const std::vector<int64_t> shape = shape_;
  append(LayerKind::kPosition, name, shape, static_cast<double>(elements(shape)));
  add_parameter(name + ".weight", shape, {.deviation = 1});
  return *this;
}

// Counted in full although half of the scores are masked: that is what the arithmetic does. Scores
// and mixed values take a product each over the width; the softmax an exponential for each score.
Builder& Builder::causal_attention(const std::string& name, int64_t heads) {
  const int64_t positions = shape_.at(0), width = shape_.at(1);
  append_affine(name + ".in_proj", 3 * width);
  add_parameter(name + ".in_proj_weight", {3 * width, width},
                {.bound = std::sqrt(6.0 / static_cast<double>(4 * width))});  // Xavier
  add_parameter(name + ".in_proj_bias", {3 * width}, {});
  const auto scores = static_cast<double>(positions * positions);
  append(LayerKind::kAttention, name, {positions, width},
         scores * (4 * static_cast<double>(width) + kOperationsOfExp * static_cast<double>(heads)))
      .groups = heads;
  append_affine(name + ".out_proj", width);
  add_parameter(name + ".out_proj.weight", {width, width}, uniform_over(width));
  add_parameter(name + ".out_proj.bias", {width}, {});
  return *this;
}

Builder& Builder::skip(const std::string& name) {
  open_.push_back(result_.layers.size());
  append(LayerKind::kSkip, name, shape_, 0);
  return *this;
}

Builder& Builder::add(const std::string& name) {
  TUTTI_CHECK(!open_.empty());
  append(LayerKind::kAdd, name, shape_, static_cast<double>(elements(shape_))).skip = open_.back();
  open_.pop_back();
  return *this;
}

Architecture Builder::part() {
  TUTTI_CHECK(open_.empty());
  return std::move(result_);
}

Architecture Builder::finish(int64_t classes, const std::string& name) {
  TUTTI_CHECK(open_.empty());
  const int64_t outputs = classes > 0 ? classes : 1;
  name.empty() ? affine(outputs) : affine(name, outputs);
  result_.outputs = shape_.back();
  result_.positions = elements(shape_) / shape_.back();
  result_.classification = classes > 0;
  return std::move(result_);
}

Layer& Builder::append(LayerKind kind, std::string name, std::vector<int64_t> output,
                       double flops) {
  Layer layer{.kind = kind,
              .name = std::move(name),
              .input = shape_,
              .output = std::move(output),
              .parameters = {},
              .flops = flops,
              .number = result_.layers.size()};
  shape_ = layer.output;
  return result_.layers.emplace_back(std::move(layer));
}

void Builder::add_parameter(const std::string& name, std::vector<int64_t> shape, Start start,
                            bool channels_last) {
  const size_t begin = result_.parameter_count;
  result_.parameter_count += static_cast<size_t>(elements(shape));
  result_.layers.back().parameters.push_back(result_.parameters.size());
  result_.parameters.push_back({.name = name,
                                .shape = std::move(shape),
                                .range = {begin, result_.parameter_count},
                                .channels_last = channels_last,
                                .init_bound = start.bound,
                                .init_mean = start.mean,
                                .init_deviation = start.deviation,
                                .running_rate = start.running_rate});
}

// What PyTorch's Linear and Conv2d start with, for weights and biases alike.
Builder::Start Builder::uniform_over(int64_t fan_in) {
  return {.bound = 1 / std::sqrt(static_cast<double>(fan_in))};
}

}  // namespace tutti

#include "models/builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "core/error.h"

namespace tutti {

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
  add_parameter(name + ".weight", {channels, layer.input[0], kernel, kernel}, fan_in, true);
  add_parameter(name + ".bias", {channels}, fan_in, false);
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

Builder& Builder::flatten() {
  if (shape_.size() != 1) append(LayerKind::kFlatten, "flatten", {elements(shape_)}, 0);
  return *this;
}

Builder& Builder::affine(int64_t outputs) {
  const int64_t inputs = shape_.at(0);
  const std::string name = fmt::format("fc{}", ++affines_);
  append(LayerKind::kAffine, name, {outputs}, static_cast<double>((2 * inputs + 1) * outputs));
  add_parameter(name + ".weight", {outputs, inputs}, inputs, false);
  add_parameter(name + ".bias", {outputs}, inputs, false);
  return *this;
}

Builder& Builder::relu() {
  const std::string& below = result_.layers.back().name;
  append(LayerKind::kRelu, below + ".relu", shape_, static_cast<double>(elements(shape_)));
  return *this;
}

Builder& Builder::dropout(double probability) {
  if (probability == 0) return *this;
  append(LayerKind::kDropout, fmt::format("drop{}", affines_), shape_,
         static_cast<double>(elements(shape_)))
      .probability = probability;
  return *this;
}

Architecture Builder::finish(int64_t classes) {
  affine(classes > 0 ? classes : 1);
  result_.outputs = shape_[0];
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
              .flops = flops};
  shape_ = layer.output;
  return result_.layers.emplace_back(std::move(layer));
}

// The bound is the one that PyTorch's Linear and Conv2d start with, for weights and biases alike.
void Builder::add_parameter(const std::string& name, std::vector<int64_t> shape, int64_t fan_in,
                            bool channels_last) {
  const size_t begin = result_.parameter_count;
  result_.parameter_count += static_cast<size_t>(elements(shape));
  result_.layers.back().parameters.push_back(result_.parameters.size());
  result_.parameters.push_back({.name = name,
                                .shape = std::move(shape),
                                .range = {begin, result_.parameter_count},
                                .channels_last = channels_last,
                                .init_bound = 1 / std::sqrt(static_cast<double>(fan_in))});
}

}  // namespace tutti

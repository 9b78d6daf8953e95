#include "tests/models/reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/dropout.h"
#include "models/layout.h"

namespace tutti {
namespace {

using Values = std::vector<double>;

size_t extent(int64_t value) { return static_cast<size_t>(value); }

Values convolve(const Layer& layer, const double* weight, const double* bias, const Values& x) {
  const size_t inputs = extent(layer.input[0]), outputs = extent(layer.output[0]);
  const size_t rows = extent(layer.output[1]), columns = extent(layer.output[2]);
  const size_t height = extent(layer.input[1]), width = extent(layer.input[2]);
  const size_t kernel = extent(layer.kernel);
  Values y;
  for (size_t o = 0; o < outputs; ++o)
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < columns; ++c) {
        double sum = bias[o];
        for (size_t i = 0; i < inputs; ++i)
          for (size_t h = 0; h < kernel; ++h)
            for (size_t w = 0; w < kernel; ++w)
              sum += weight[((o * inputs + i) * kernel + h) * kernel + w] *
                     x[(i * height + r + h) * width + c + w];
        y.push_back(sum);
      }
  return y;
}

Values pool(const Layer& layer, const Values& x) {
  const size_t rows = extent(layer.output[1]), columns = extent(layer.output[2]);
  const size_t height = extent(layer.input[1]), width = extent(layer.input[2]);
  const size_t kernel = extent(layer.kernel);
  Values y;
  for (size_t o = 0; o < extent(layer.output[0]); ++o)
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < columns; ++c) {
        double highest = -HUGE_VAL;
        for (size_t h = 0; h < kernel; ++h)
          for (size_t w = 0; w < kernel; ++w)
            highest = std::max(highest, x[(o * height + r * kernel + h) * width + c * kernel + w]);
        y.push_back(highest);
      }
  return y;
}

Values multiply_add(const double* weight, const double* bias, size_t outputs, const Values& x) {
  Values y;
  for (size_t o = 0; o < outputs; ++o)
    y.push_back(std::inner_product(x.begin(), x.end(), weight + o * x.size(), bias[o]));
  return y;
}

double cross_entropy_of(const double* scores, size_t classes, int32_t label) {
  double sum = 0;
  for (size_t i = 0; i < classes; ++i) sum += std::exp(scores[i]);
  return std::log(sum) - scores[label];
}

}  // namespace

Reference::Reference(const Architecture& architecture, uint64_t seed)
    : architecture_(architecture), seed_(seed) {
  std::vector<float> positions(architecture.parameter_count);
  std::iota(positions.begin(), positions.end(), 0.0F);  // exact below 2^24
  for (const Parameter& parameter : architecture.parameters) {
    std::vector<float> exported(parameter.range.size());
    export_parameter(parameter, positions, exported);
    for (float position : exported) memory_of_.push_back(static_cast<size_t>(position));
  }
}

Values Reference::apply(size_t index, const Values& torch, const Values& x) const {
  const Layer& layer = architecture_.layers[index];
  const auto parameter = [&](size_t i) {
    return torch.data() + architecture_.parameters[layer.parameters[i]].range.begin;
  };
  switch (layer.kind) {
    case LayerKind::kConvolution:
      return convolve(layer, parameter(0), parameter(1), x);
    case LayerKind::kAffine:
      return multiply_add(parameter(0), parameter(1), extent(layer.output[0]), x);
    case LayerKind::kMaxPool:
      return pool(layer, x);
    case LayerKind::kRelu: {
      Values y = x;
      for (double& value : y) value = std::max(value, 0.0);
      return y;
    }
    default:
      return x;
  }
}

Values Reference::scores(const Values& flat, const Batch& batch, bool training) const {
  Values torch(flat.size()), result;
  for (size_t i = 0; i < flat.size(); ++i) torch[i] = flat[memory_of_[i]];
  const size_t width = batch.features.size() / batch.size();
  for (size_t row = 0; row < batch.size(); ++row) {
    const auto first = batch.features.begin() + static_cast<ptrdiff_t>(row * width);
    Values x(first, first + static_cast<ptrdiff_t>(width));
    for (size_t i = 0; i < architecture_.layers.size(); ++i) {
      const Layer& layer = architecture_.layers[i];
      x = apply(i, torch, x);
      if (layer.kind != LayerKind::kDropout || !training) continue;
      std::vector<float> mask(x.size());
      fill_dropout_mask({seed_, batch.step, batch.samples[row], static_cast<uint32_t>(i)},
                        layer.probability, mask);
      for (size_t j = 0; j < x.size(); ++j) x[j] *= static_cast<double>(mask[j]);
    }
    result.insert(result.end(), x.begin(), x.end());
  }
  return result;
}

double Reference::training_loss(const Values& flat, const Batch& batch) const {
  const Values all = scores(flat, batch, true);
  const auto outputs = static_cast<size_t>(architecture_.outputs);
  double loss = 0;
  for (size_t row = 0; row < batch.size(); ++row) {
    if (architecture_.classification) {
      loss += cross_entropy_of(all.data() + row * outputs, outputs, batch.labels[row]);
    } else {
      const double error = all[row] - static_cast<double>(batch.targets[row]);
      loss += error * error / 2;
    }
    for (const Parameter& parameter : architecture_.parameters)
      if (parameter.shape.size() > 1)
        for (size_t i = parameter.range.begin; i < parameter.range.end; ++i)
          loss += architecture_.l2 / 2 * flat[i] * flat[i];
  }
  return loss;
}

}  // namespace tutti

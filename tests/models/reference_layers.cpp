// The arithmetic of each kind of layer, in the plainest form.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/models/reference.h"

namespace tutti {
namespace {

using Values = std::vector<double>;

size_t extent(int64_t value) { return static_cast<size_t>(value); }

Values convolve(const Layer& layer, const double* weight, const double* bias, const Values& x) {
  const size_t inputs = extent(layer.input[0]), outputs = extent(layer.output[0]);
  const size_t rows = extent(layer.output[1]), columns = extent(layer.output[2]);
  const size_t height = extent(layer.input[1]), width = extent(layer.input[2]);
  const size_t kernel = extent(layer.kernel), stride = extent(layer.stride);
  const size_t padding = extent(layer.padding);
  Values y;
  for (size_t o = 0; o < outputs; ++o)
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < columns; ++c) {
        double sum = bias != nullptr ? bias[o] : 0;
        for (size_t i = 0; i < inputs; ++i)
          for (size_t h = 0; h < kernel; ++h)
            for (size_t w = 0; w < kernel; ++w) {
              const size_t row = r * stride + h - padding, column = c * stride + w - padding;
              if (row < height && column < width)  // wraps around below zero
                sum += weight[((o * inputs + i) * kernel + h) * kernel + w] *
                       x[(i * height + row) * width + column];
            }
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

Values average(const Layer& layer, const Values& x) {
  const size_t pixels = extent(layer.input[1] * layer.input[2]);
  Values y;
  for (size_t first = 0; first < x.size(); first += pixels) {
    double sum = 0;
    for (size_t i = 0; i < pixels; ++i) sum += x[first + i];
    y.push_back(sum / static_cast<double>(pixels));
  }
  return y;
}

// Of each row of the last dimension.
Values multiply_add(const double* weight, const double* bias, size_t inputs, size_t outputs,
                    const Values& x) {
  Values y;
  for (auto row = x.begin(); row != x.end(); row += static_cast<ptrdiff_t>(inputs))
    for (size_t o = 0; o < outputs; ++o)
      y.push_back(std::inner_product(row, row + static_cast<ptrdiff_t>(inputs), weight + o * inputs,
                                     bias[o]));
  return y;
}

// Each run of `size` values by its own mean and deviation.
void standardise(Values& x, size_t size) {
  for (size_t first = 0; first < x.size(); first += size) {
    double sum = 0, squares = 0;
    for (size_t i = first; i < first + size; ++i) sum += x[i];
    const double mean = sum / static_cast<double>(size);
    for (size_t i = first; i < first + size; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const double deviation = std::sqrt(squares / static_cast<double>(size) + 1e-5);
    for (size_t i = first; i < first + size; ++i) x[i] = (x[i] - mean) / deviation;
  }
}

Values group_norm(const Layer& layer, const double* weight, const double* bias, Values x) {
  const size_t pixels = extent(layer.input[1] * layer.input[2]);
  standardise(x, x.size() / extent(layer.groups));
  for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] * weight[i / pixels] + bias[i / pixels];
  return x;
}

Values layer_norm(const Layer& layer, const double* weight, const double* bias, Values x) {
  const size_t width = extent(layer.input.back());
  standardise(x, width);
  for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] * weight[i % width] + bias[i % width];
  return x;
}

Values embed(const Layer& layer, const double* weight, const Values& x) {
  const size_t width = extent(layer.output[1]);
  Values y;
  for (double code : x)
    y.insert(y.end(), weight + static_cast<size_t>(code) * width,
             weight + (static_cast<size_t>(code) + 1) * width);
  return y;
}

Values attend(const Layer& layer, const Values& x) {
  const size_t positions = extent(layer.input[0]), width = extent(layer.output[1]);
  const size_t size = width / extent(layer.groups);
  Values y(positions * width);
  const auto at = [&](size_t position, size_t part, size_t i) {
    return x[position * 3 * width + part * width + i];
  };
  for (size_t head = 0; head < width; head += size)
    for (size_t to = 0; to < positions; ++to) {
      Values shares;
      for (size_t from = 0; from <= to; ++from) {
        double score = 0;
        for (size_t i = head; i < head + size; ++i) score += at(to, 0, i) * at(from, 1, i);
        shares.push_back(std::exp(score / std::sqrt(static_cast<double>(size))));
      }
      const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
      for (size_t from = 0; from <= to; ++from)
        for (size_t i = head; i < head + size; ++i)
          y[to * width + i] += shares[from] / sum * at(from, 2, i);
    }
  return y;
}

// Channels and pixels that the block added have nothing to add to.
Values add(const Layer& layer, const Layer& skip, const Values& kept, Values x) {
  if (layer.output.size() != 3) {
    for (size_t i = 0; i < x.size(); ++i) x[i] += kept[i];
    return x;
  }
  const size_t height = extent(skip.output[1]), width = extent(skip.output[2]);
  const size_t rows = extent(layer.output[1]), columns = extent(layer.output[2]);
  const size_t stride = height == rows ? 1 : 2;
  for (size_t o = 0; o < extent(skip.output[0]); ++o)
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < columns; ++c)
        x[(o * rows + r) * columns + c] += kept[(o * height + r * stride) * width + c * stride];
  return x;
}

}  // namespace

void apply_batch_norm(const Architecture& architecture, const Layer& layer, const Values& torch,
                      bool training, std::vector<Values>& samples, Values* off) {
  const size_t pixels = extent(layer.input[1] * layer.input[2]);
  const size_t ghost = training ? extent(layer.ghost_batch) : samples.size();
  const auto place = [&](size_t i, size_t channel) {
    return architecture.parameters[layer.parameters[i]].range.begin + channel;
  };
  const auto parameter = [&](size_t i, size_t channel) { return torch[place(i, channel)]; };
  for (size_t first = 0; first < samples.size(); first += ghost)
    for (size_t c = 0; c < extent(layer.input[0]); ++c) {
      const size_t end = std::min(samples.size(), first + ghost);
      double mean = parameter(2, c), variance = parameter(3, c);
      if (training) {
        Values all;
        for (size_t n = first; n < end; ++n)
          for (size_t p = 0; p < pixels; ++p) all.push_back(samples[n][c * pixels + p]);
        const auto count = static_cast<double>(all.size());
        mean = std::accumulate(all.begin(), all.end(), 0.0) / count;
        variance = 0;
        for (const double value : all) variance += (value - mean) * (value - mean) / count;
        if (off != nullptr) {
          const auto weight = static_cast<double>(end - first);
          const double unbiased = variance * count / (count - 1);
          (*off)[place(2, c)] += weight * (parameter(2, c) - mean);
          (*off)[place(3, c)] += weight * (parameter(3, c) - unbiased);
        }
      }
      for (size_t n = first; n < end; ++n)
        for (size_t p = 0; p < pixels; ++p) {
          double& value = samples[n][c * pixels + p];
          value = (value - mean) / std::sqrt(variance + 1e-5) * parameter(0, c) + parameter(1, c);
        }
    }
}

Values apply_layer(const Architecture& architecture, size_t index, const Values& torch,
                   const Values& x, std::map<size_t, Values>& kept) {
  const Layer& layer = architecture.layers[index];
  const auto parameter = [&](size_t i) {
    return i < layer.parameters.size()
               ? torch.data() + architecture.parameters[layer.parameters[i]].range.begin
               : nullptr;
  };
  Values y = x;
  switch (layer.kind) {
    case LayerKind::kConvolution:
      return convolve(layer, parameter(0), parameter(1), x);
    case LayerKind::kAffine:
      return multiply_add(parameter(0), parameter(1), extent(layer.input.back()),
                          extent(layer.output.back()), x);
    case LayerKind::kMaxPool:
      return pool(layer, x);
    case LayerKind::kAveragePool:
      return average(layer, x);
    case LayerKind::kRelu:
      for (double& value : y) value = std::max(value, 0.0);
      return y;
    case LayerKind::kGelu:
      for (double& value : y) value *= (1 + std::erf(value / std::sqrt(2.0))) / 2;
      return y;
    case LayerKind::kGroupNorm:
      return group_norm(layer, parameter(0), parameter(1), x);
    case LayerKind::kLayerNorm:
      return layer_norm(layer, parameter(0), parameter(1), x);
    case LayerKind::kEmbedding:
      return embed(layer, parameter(0), x);
    case LayerKind::kPosition:
      for (size_t i = 0; i < y.size(); ++i) y[i] += parameter(0)[i];
      return y;
    case LayerKind::kAttention:
      return attend(layer, x);
    case LayerKind::kSkip:
      kept[index] = x;
      return x;
    case LayerKind::kAdd:
      return add(layer, architecture.layers[layer.skip], kept.at(layer.skip), x);
    case LayerKind::kBatchNorm:  // of all samples together
    case LayerKind::kDropout:
    case LayerKind::kFlatten:
    case LayerKind::kSpread:  // of shards, which are compared with whole models
    case LayerKind::kCombine:
    case LayerKind::kRows:  // of sparse models, which have tests of their own
      break;
  }
  return x;
}

}  // namespace tutti

#include "models/torch/group_norm.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "core/vectorised.h"

namespace tutti {
namespace {

// Sums over the pixels go channel by channel, so that they become vector instructions; what
// remains, a few numbers for each group, is done in double precision. So are sums of more pixels
// than this, which a float would round too often.
constexpr size_t kPixelsAtOnce = 1024;

// Calls sum(begin, count) for pieces of the pixels, each of which overwrites `sums` with its own;
// then they hold those of all.
template <class Sum>
void in_pieces(size_t pixels, std::initializer_list<std::vector<float>*> sums, const Sum& sum) {
  if (pixels <= kPixelsAtOnce) return sum(0, pixels);
  std::vector<std::vector<double>> totals;
  for (const std::vector<float>* one : sums) totals.emplace_back(one->size());
  for (size_t begin = 0; begin < pixels; begin += kPixelsAtOnce) {
    sum(begin, std::min(kPixelsAtOnce, pixels - begin));
    auto total = totals.begin();
    for (const std::vector<float>* one : sums) {
      for (size_t c = 0; c < one->size(); ++c) (*total)[c] += static_cast<double>((*one)[c]);
      ++total;
    }
  }
  auto total = totals.begin();
  for (std::vector<float>* one : sums) {
    for (size_t c = 0; c < one->size(); ++c) (*one)[c] = static_cast<float>((*total)[c]);
    ++total;
  }
}

TUTTI_VECTORISED
void sum_pixels(const float* __restrict x, size_t pixels, size_t channels, float* __restrict sum) {
  std::fill_n(sum, channels, 0.0F);
  for (size_t p = 0; p < pixels; ++p)
    for (size_t c = 0; c < channels; ++c) sum[c] += x[p * channels + c];
}

TUTTI_VECTORISED
void sum_squares(const float* __restrict x, size_t pixels, size_t channels,
                 const float* __restrict centre, float* __restrict sum) {
  std::fill_n(sum, channels, 0.0F);
  for (size_t p = 0; p < pixels; ++p)
    for (size_t c = 0; c < channels; ++c) {
      const float distance = x[p * channels + c] - centre[c];
      sum[c] += distance * distance;
    }
}

TUTTI_VECTORISED
void sum_products(const float* __restrict x, const float* __restrict slope, size_t pixels,
                  size_t channels, const float* __restrict centre, float* __restrict products,
                  float* __restrict slopes) {
  std::fill_n(products, channels, 0.0F);
  std::fill_n(slopes, channels, 0.0F);
  for (size_t p = 0; p < pixels; ++p)
    for (size_t c = 0; c < channels; ++c) {
      const float value = slope[p * channels + c];
      products[c] += value * (x[p * channels + c] - centre[c]);
      slopes[c] += value;
    }
}

TUTTI_VECTORISED
void scale_pixels(const float* __restrict x, size_t pixels, size_t channels,
                  const float* __restrict centre, const float* __restrict factor,
                  const float* __restrict offset, float* __restrict y) {
  for (size_t p = 0; p < pixels; ++p)
    for (size_t c = 0; c < channels; ++c)
      y[p * channels + c] = (x[p * channels + c] - centre[c]) * factor[c] + offset[c];
}

TUTTI_VECTORISED
void combine_pixels(const float* __restrict x, const float* __restrict slope, size_t pixels,
                    size_t channels, const float* __restrict centre,
                    const float* __restrict of_slope, const float* __restrict of_x,
                    const float* __restrict offset, float* __restrict x_slope) {
  for (size_t p = 0; p < pixels; ++p)
    for (size_t c = 0; c < channels; ++c) {
      const size_t i = p * channels + c;
      x_slope[i] = slope[i] * of_slope[c] + (x[i] - centre[c]) * of_x[c] + offset[c];
    }
}

double sum_of(const float* values, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += static_cast<double>(values[i]);
  return sum;
}

}  // namespace

// In two passes, mean first: a difference of large squares would lose the deviation.
void group_norm(const GroupNormShape& s, const float* x, const float* weight, const float* bias,
                float* y, GroupStatistics& statistics) {
  const size_t width = s.channels / s.groups;
  const auto count = static_cast<double>(width * s.pixels);
  statistics.mean.resize(s.samples * s.groups);
  statistics.inverse.resize(s.samples * s.groups);
  std::vector<float> sum(s.channels), centre(s.channels), factor(s.channels);
  for (size_t n = 0; n < s.samples; ++n) {
    const float* own = x + n * s.pixels * s.channels;
    float* mean = statistics.mean.data() + n * s.groups;
    float* inverse = statistics.inverse.data() + n * s.groups;
    in_pieces(s.pixels, {&sum}, [&](size_t begin, size_t some) {
      sum_pixels(own + begin * s.channels, some, s.channels, sum.data());
    });
    for (size_t g = 0; g < s.groups; ++g) {
      mean[g] = static_cast<float>(sum_of(sum.data() + g * width, width) / count);
      std::fill_n(centre.begin() + static_cast<ptrdiff_t>(g * width), width, mean[g]);
    }
    in_pieces(s.pixels, {&sum}, [&](size_t begin, size_t some) {
      sum_squares(own + begin * s.channels, some, s.channels, centre.data(), sum.data());
    });
    for (size_t g = 0; g < s.groups; ++g) {
      const double variance = sum_of(sum.data() + g * width, width) / count;
      inverse[g] = static_cast<float>(1 / std::sqrt(variance + kNormEpsilon));
      for (size_t c = g * width; c < (g + 1) * width; ++c) factor[c] = inverse[g] * weight[c];
    }
    scale_pixels(own, s.pixels, s.channels, centre.data(), factor.data(), bias,
                 y + n * s.pixels * s.channels);
  }
}

void norm_by(const GroupNormShape& s, const float* x, const float* weight, const float* bias,
             const GroupStatistics& given, float* y) {
  std::vector<float> factor(s.channels);
  for (size_t c = 0; c < s.channels; ++c) factor[c] = given.inverse[c] * weight[c];
  scale_pixels(x, s.samples * s.pixels, s.channels, given.mean.data(), factor.data(), bias, y);
}

// With z = (x - mean) / deviation and m values in a group, the slope by x is
// (w s - mean of (w s) - z mean of (w s z)) / deviation.
void group_norm_backward(const GroupNormShape& s, const float* x, const float* slope,
                         const float* weight, const GroupStatistics& statistics, float* x_slope,
                         float* weight_slope, float* bias_slope) {
  const size_t width = s.channels / s.groups;
  const auto count = static_cast<double>(width * s.pixels);
  std::fill_n(weight_slope, s.channels, 0.0F);
  std::fill_n(bias_slope, s.channels, 0.0F);
  std::vector<float> centre(s.channels), products(s.channels), slopes(s.channels);
  std::vector<float> of_slope(s.channels), of_x(s.channels), offset(s.channels);
  for (size_t n = 0; n < s.samples; ++n) {
    const size_t at = n * s.pixels * s.channels;
    const float* mean = statistics.mean.data() + n * s.groups;
    const float* inverse = statistics.inverse.data() + n * s.groups;
    for (size_t c = 0; c < s.channels; ++c) centre[c] = mean[c / width];
    in_pieces(s.pixels, {&products, &slopes}, [&](size_t begin, size_t some) {
      const size_t from = at + begin * s.channels;
      sum_products(x + from, slope + from, some, s.channels, centre.data(), products.data(),
                   slopes.data());
    });
    for (size_t g = 0; g < s.groups; ++g) {
      double plain = 0, weighted = 0;
      for (size_t c = g * width; c < (g + 1) * width; ++c) {
        products[c] *= inverse[g];
        weight_slope[c] += products[c];
        bias_slope[c] += slopes[c];
        plain += static_cast<double>(weight[c]) * static_cast<double>(slopes[c]);
        weighted += static_cast<double>(weight[c]) * static_cast<double>(products[c]);
      }
      const auto scale = static_cast<double>(inverse[g]);
      for (size_t c = g * width; c < (g + 1) * width; ++c) {
        of_slope[c] = inverse[g] * weight[c];
        of_x[c] = static_cast<float>(-scale * scale * weighted / count);
        offset[c] = static_cast<float>(-scale * plain / count);
      }
    }
    combine_pixels(x + at, slope + at, s.pixels, s.channels, centre.data(), of_slope.data(),
                   of_x.data(), offset.data(), x_slope + at);
  }
}

}  // namespace tutti

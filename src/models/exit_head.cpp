#include "models/exit_head.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/random.h"
#include "core/vectorised.h"

namespace tutti {
namespace {

// The innermost loops run over classes, which lie side by side. What a relu set to zero is skipped.
TUTTI_VECTORISED void add_scores(const float* __restrict x, const float* __restrict weights,
                                 size_t values, size_t classes, float* __restrict scores) {
  for (size_t k = 0; k < values; ++k) {
    if (x[k] == 0) continue;
    for (size_t c = 0; c < classes; ++c) scores[c] += x[k] * weights[k * classes + c];
  }
}

TUTTI_VECTORISED void add_gradients(const float* __restrict x, const float* __restrict slopes,
                                    size_t values, size_t classes, float* __restrict gradients) {
  for (size_t k = 0; k < values; ++k) {
    if (x[k] == 0) continue;
    for (size_t c = 0; c < classes; ++c) gradients[k * classes + c] += x[k] * slopes[c];
  }
}

TUTTI_VECTORISED void write_slope(const float* __restrict slopes, const float* __restrict weights,
                                  size_t values, size_t classes, float* __restrict slope) {
  for (size_t k = 0; k < values; ++k) {
    float sum = 0;
    for (size_t c = 0; c < classes; ++c) sum += slopes[c] * weights[k * classes + c];
    slope[k] = sum;
  }
}

}  // namespace

// Starts as PyTorch's Linear does.
ExitHead::ExitHead(size_t values, size_t classes, uint64_t seed, uint32_t first_parameter,
                   Arithmetic arithmetic)
    : values_(values), classes_(classes) {
  TUTTI_CHECK(values > 0 && classes > 0);
  parameters_.resize(parameter_count());
  gradients_.resize(parameter_count());
  arithmetic.perform([&] {
    const double bound = 1 / std::sqrt(static_cast<double>(values));
    Random weights(seed, Stream::kInit, first_parameter);
    Random biases(seed, Stream::kInit, first_parameter + 1);
    for (size_t c = 0; c < classes; ++c) {
      for (size_t k = 0; k < values; ++k)
        parameters_[k * classes + c] = static_cast<float>(bound * (2 * weights.uniform() - 1));
      parameters_[values * classes + c] = static_cast<float>(bound * (2 * biases.uniform() - 1));
    }
  });
}

double ExitHead::forward_flops() const { return 2.0 * static_cast<double>(values_ * classes_); }

std::span<const float> ExitHead::forward(std::span<const float> activations) {
  const size_t samples = activations.size() / values_;
  scores_.resize(samples * classes_);
  for (size_t i = 0; i < samples; ++i) {
    float* scores = scores_.data() + i * classes_;
    std::copy_n(parameters_.data() + values_ * classes_, classes_, scores);
    add_scores(activations.data() + i * values_, parameters_.data(), values_, classes_, scores);
  }
  return scores_;
}

void ExitHead::backward(std::span<const float> activations, std::span<const float> score_slopes,
                        std::span<float> slope) {
  TUTTI_CHECK(slope.size() == activations.size());
  std::fill(gradients_.begin(), gradients_.end(), 0.0F);
  const size_t samples = activations.size() / values_;
  for (size_t i = 0; i < samples; ++i) {
    const float* x = activations.data() + i * values_;
    const float* slopes = score_slopes.data() + i * classes_;
    add_gradients(x, slopes, values_, classes_, gradients_.data());
    for (size_t c = 0; c < classes_; ++c) gradients_[values_ * classes_ + c] += slopes[c];
    write_slope(slopes, parameters_.data(), values_, classes_, slope.data() + i * values_);
  }
}

}  // namespace tutti

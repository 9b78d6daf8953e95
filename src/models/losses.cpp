#include "models/losses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"

namespace tutti {

size_t checked_label(int32_t label, size_t classes) {
  if (label < 0 || static_cast<size_t>(label) >= classes)
    throw DataError(fmt::format("label {} is outside 0 to {}; the data does not fit the model",
                                label, classes - 1));
  return static_cast<size_t>(label);
}

// The largest score is subtracted first, so that no exponential overflows.
double cross_entropy(std::span<const float> scores, std::span<const int32_t> labels, float scale,
                     std::span<float> slopes) {
  if (labels.empty()) return 0;
  const size_t classes = scores.size() / labels.size();
  double loss = 0;
  std::vector<double> powers(classes);
  for (size_t row = 0; row < labels.size(); ++row) {
    const std::span<const float> own = scores.subspan(row * classes, classes);
    const size_t label = checked_label(labels[row], classes);
    const float highest = *std::max_element(own.begin(), own.end());
    double sum = 0;
    for (size_t i = 0; i < classes; ++i) {
      powers[i] = std::exp(static_cast<double>(own[i] - highest));
      sum += powers[i];
    }
    loss += std::log(sum) - static_cast<double>(own[label] - highest);
    if (slopes.empty()) continue;
    const std::span<float> slope = slopes.subspan(row * classes, classes);
    for (size_t i = 0; i < classes; ++i) {
      const double share = powers[i] / sum;
      slope[i] = scale * static_cast<float>(i == label ? share - 1 : share);
    }
  }
  // A label's score of minus infinity has a finite slope.
  if (!std::isfinite(loss)) std::fill(slopes.begin(), slopes.end(), NAN);
  return loss;
}

double half_squared_error(std::span<const float> scores, std::span<const float> targets,
                          float scale, std::span<float> slopes) {
  double loss = 0;
  for (size_t row = 0; row < targets.size(); ++row) {
    const double error = static_cast<double>(scores[row]) - static_cast<double>(targets[row]);
    loss += error * error / 2;
    if (!slopes.empty()) slopes[row] = scale * static_cast<float>(error);
  }
  return loss;
}

size_t count_correct(std::span<const float> scores, std::span<const int32_t> labels) {
  if (labels.empty()) return 0;
  const size_t classes = scores.size() / labels.size();
  size_t correct = 0;
  for (size_t row = 0; row < labels.size(); ++row) {
    const auto own = scores.subspan(row * classes, classes);
    const auto best = std::max_element(own.begin(), own.end()) - own.begin();
    if (best == labels[row]) ++correct;
  }
  return correct;
}

}  // namespace tutti

#include "testbed/smooth.h"

#include <cmath>

namespace tutti {

std::vector<double> smooth(const std::vector<double>& values) {
  const double window = kSmoothedShare * static_cast<double>(values.size());
  const double share = window > 1 ? 2 / (window + 1) : 1;
  std::vector<double> result;
  result.reserve(values.size());
  double sum = 0, weight = 0;  // of what has been seen; old values count less
  for (const double value : values) {
    if (!std::isfinite(value)) {
      result.push_back(NAN);
      continue;
    }
    sum = (1 - share) * sum + share * value;
    weight = (1 - share) * weight + share;
    result.push_back(sum / weight);
  }
  return result;
}

std::vector<size_t> evenly(size_t size, size_t most) {
  std::vector<size_t> indices;
  const size_t count = size < most ? size : most;
  for (size_t i = 0; i < count; ++i)
    indices.push_back(count == size ? i : i * (size - 1) / (count - 1));
  return indices;
}

}  // namespace tutti

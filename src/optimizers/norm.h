// The Euclidean norm of a vector.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <span>

namespace tutti {

// In double and always in the same order, so that replicas with equal values get equal norms. Eight
// interleaved partial sums, because one chain of additions would be bound by their latency.
inline double norm_of(std::span<const float> values) {
  constexpr size_t kSums = 8;
  std::array<double, kSums> sums{};
  size_t i = 0;
  for (; i + kSums <= values.size(); i += kSums)
    for (size_t j = 0; j < kSums; ++j) {
      const double value = values[i + j];
      sums[j] += value * value;
    }
  for (size_t j = 0; i < values.size(); ++i, ++j) sums[j] += double{values[i]} * double{values[i]};
  double total = 0;
  for (const double sum : sums) total += sum;
  return std::sqrt(total);
}

}  // namespace tutti

#include "testbed/thin.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"

namespace tutti {
namespace {

// Appends the positions of the lowest and the highest value in [begin, end), in order.
void keep_extremes(std::span<const double> values, size_t begin, size_t end,
                   std::vector<size_t>& kept) {
  size_t low = begin, high = begin;
  for (size_t i = begin; i < end; ++i) {
    if (std::isnan(values[i])) continue;
    if (std::isnan(values[low]) || values[i] < values[low]) low = i;
    if (std::isnan(values[high]) || values[i] > values[high]) high = i;
  }
  kept.push_back(std::min(low, high));
  if (low != high) kept.push_back(std::max(low, high));
}

}  // namespace

std::vector<size_t> thin(std::span<const double> values, size_t most) {
  TUTTI_CHECK(most >= kFewestThinned);
  const size_t count = values.size();
  std::vector<size_t> kept;
  if (count <= most) {
    kept.resize(count);
    std::iota(kept.begin(), kept.end(), size_t{0});
    return kept;
  }
  const size_t stretches = (most - 2) / 2, inside = count - 2;
  kept.reserve(most);
  kept.push_back(0);
  for (size_t i = 0; i < stretches; ++i)
    keep_extremes(values, 1 + inside * i / stretches, 1 + inside * (i + 1) / stretches, kept);
  kept.push_back(count - 1);
  return kept;
}

}  // namespace tutti

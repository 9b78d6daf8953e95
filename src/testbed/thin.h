// Thinning of long series for drawing, without hiding anything: an outlier that a plain "every n-th
// point" would drop is kept, because each stretch keeps its lowest and its highest value.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tutti {

inline constexpr size_t kFewestThinned = 4;

// Which points to keep, in ascending order and at most `most` (at least kFewestThinned): the first,
// the last, and of each of equally long stretches in between the minimum and the maximum. All of
// them when there are no more than `most`. NaN marks a missing value: it is kept only where a
// stretch has nothing else, so that a gap stays a gap.
std::vector<size_t> thin(std::span<const double> values, size_t most);

}  // namespace tutti

// A smoothed loss: what a picture draws, so that one sees where a loss goes and not how batches
// differ.
#pragma once

#include <cstddef>
#include <vector>

namespace tutti {

inline constexpr double kSmoothedShare =
    0.05;  // of the steps that the moving average looks back on

// Returns an exponential moving average of as many values. It begins without a bias towards the
// first one. What is not a finite number has no part in it, and has no value there.
std::vector<double> smooth(const std::vector<double>& values);

// Returns at most `most` indices below `size`, evenly far apart, with the first and the last.
std::vector<size_t> evenly(size_t size, size_t most);

}  // namespace tutti

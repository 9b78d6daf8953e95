// All-reduces between processes of this machine, timed: what messages and shared memory cost here.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

namespace tutti {

// Returns the seconds of a sum of each size by a topology ("direct", "ring"), on the node that is
// slowest. They are medians, and of long sums what a tenth of them stays below: other programs
// should not count.
std::vector<double> time_sums(const std::string& topology, int processes,
                              const std::vector<size_t>& sizes, const std::atomic<bool>& stop);

// Returns the speed of a core by the reference kernel while so many processes run it at once.
double speed_with(int processes, const std::atomic<bool>& stop);

}  // namespace tutti

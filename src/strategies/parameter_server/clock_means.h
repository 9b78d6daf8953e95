// Averages the local updates that belong to one clock. This is DynSGD of Jiang et al.,
// "Heterogeneity-aware distributed parameter servers", SIGMOD 2017, as we understand it.
//
// The first update of a clock has its full weight. When the d-th arrives it counts 1/d, and the
// weight of each earlier one is revised from 1/(d - 1) to 1/d. So a late update neither dominates
// nor is lost. For that the sum of each clock is kept until nobody can push to it any more.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/archive.h"

namespace tutti::parameter_server {

class ClockMeans {
 public:
  // Returns the gradient for a step at `rate` that has the effect of adding this update to the mean
  // of `clock`. The local update is `scale` times `gradient`. The result is valid until the next
  // call. For an empty gradient only the number of updates is kept.
  std::span<const float> revise(int64_t clock, std::span<const float> gradient, double scale,
                                double rate);
  void forget_before(int64_t clock);
  size_t open() const { return clocks_.size(); }
  void archive(Archive& archive);

 private:
  struct Clock {
    int64_t count = 0;
    std::vector<float> sum;  // of the updates, each times its rate
  };
  std::map<int64_t, Clock> clocks_;
  std::vector<float> change_;
};

}  // namespace tutti::parameter_server

// The local updates that belong to one clock count as their mean: DynSGD of Jiang et al.,
// "Heterogeneity-aware distributed parameter servers", SIGMOD 2017, as we understand it.
//
// A clock's first update has its full weight. When the d-th arrives it counts 1/d, and what the
// others contributed is revised from 1/(d - 1) to 1/d each: a late one neither dominates nor is
// lost. For that the sum of each clock is kept until nobody can push to it any more.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/archive.h"

namespace tutti::parameter_server {

class ClockMeans {
 public:
  // What the parameters change by when this gradient, `scale` of which is a local update at `rate`,
  // comes to `clock`: a gradient for a step at this rate. It stays until the next call. Nothing but
  // the number of updates is kept of an empty gradient.
  std::span<const float> revise(int64_t clock, std::span<const float> gradient, double scale,
                                double rate);
  void forget_before(int64_t clock);
  size_t open() const { return clocks_.size(); }
  void archive(Archive& archive);

 private:
  struct Clock {
    int64_t count = 0;
    std::vector<float> sum;  // of the updates, each times the rate that it came at
  };
  std::map<int64_t, Clock> clocks_;
  std::vector<float> change_;
};

}  // namespace tutti::parameter_server

// How long a job takes to its target, from what is known of its learning: at which evaluation it
// gets there comes from gradients, when that one is over from a simulation of the run.
#pragma once

#include <atomic>
#include <vector>

#include "strategies/plan.h"
#include "testbed/learning.h"

namespace tutti {

// How much is simulated for a job, in messages and computations: to the evaluation itself where
// that is less, else what follows is taken to be like what was simulated.
constexpr double kMostEffort = 300'000;

struct TimesToTarget {
  std::vector<double> times_s;  // of each seed that reached it
  double error = 0;  // of them: half the width of a 90 % interval, relative; 0: all was simulated

  double mean_s() const;
};

// `job` is planned, and at least one seed reached its target.
TimesToTarget times_to_target(const Job& job, const Plan& plan, const Learning& learning,
                              const Data& data, double most_effort, const std::atomic<bool>& stop);

}  // namespace tutti

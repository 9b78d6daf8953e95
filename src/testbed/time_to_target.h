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

// Returns the seconds for each seed that reached the target. `job` is planned.
std::vector<double> times_to_target(const Job& job, const Plan& plan, const Learning& learning,
                                    const Data& data, double most_effort,
                                    const std::atomic<bool>& stop);

}  // namespace tutti

// What an advice simulates in processes of their own. A strategy that fails there, because its loss
// diverges or it cannot be so small, is not the end of the advice.
#pragma once

#include <atomic>
#include <string>

#include "testbed/candidates.h"
#include "testbed/time_to_target.h"

namespace tutti {

// Times are found from parts of runs. Throws Error for a part that tells none.
double known_time(double time_s);

// Each of these throws InterruptedError alone; what it returns is read by the function after it.

// A step of a candidate, and roughly the time of all epochs of its job.
std::string look_at(const Candidate& candidate, const Data& data, const std::atomic<bool>& stop);
struct FirstLook {
  std::string failure;  // empty: there is none
  StepFigures step;
  bool needs_gradients = false;  // what is sent, and when, depends on values
  double whole_s = 0;
};
FirstLook first_look_in(const std::string& reply);

// The times of a choice to its target, of each seed. `with_little`: of the first intervals alone,
// where they take gradients.
std::string simulate_times(const Choice& choice, const Plan& plan, bool with_little,
                           const Data& data, const std::atomic<bool>& stop);
// The time of a choice on another cluster, roughly. It is planned for that anew.
std::string simulate_on(const Choice& choice, const ClusterConfig& cluster, bool needs_gradients,
                        const Data& data, const std::atomic<bool>& stop);
// No times where the simulation failed.
TimesToTarget times_in(const std::string& reply);

}  // namespace tutti

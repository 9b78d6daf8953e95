// When a run measures its quality: the run as it would be, simulated without arithmetic. What
// happens only now and then, and what workers do at a pace of their own, takes the time that it
// takes there. Where a whole run is too much, its first part stands for the rest.
#pragma once

#include <atomic>
#include <vector>

#include "jobs/job.h"

namespace tutti {

struct RunQuestion {
  Job job;
  double steps_each = 0;         // between two evaluations, in the long run
  int64_t evaluations = 1;       // to the one that matters
  double effort_of_step = 1;     // messages and computations that a step has to be simulated for
  int64_t recurs_every = 1;      // steps, as the plan has it
  bool steps_are_alike = false;  // each takes the time of every other
};

// What is simulated of a run, and what follows from it for the rest.
struct SimulatedRun {
  std::vector<double> evaluated_s = {};  // when each of the first evaluations was over
  // From here on steps and evaluations are taken to be like those before.
  double steps_each = 0;
  double end_s = 0, end_step = 0;
  int64_t end_count = 0;  // evaluations until then
  double step_s = 0, evaluation_s = 0;
  double wander_s = 0;    // deviation of the time of as many steps as lie between evaluations
  double step_off_s = 0;  // deviation of step_s itself: few steps tell little of it
  int freedom = 0;        // differences that both were found from
  double hidden = 0;      // deviation that intervals do not show, as a share of what follows

  // When evaluation number `count`, from 1, is over.
  double when(int64_t count) const;
  // Half the width of a 90 % interval around that, relative; 0 where it was simulated.
  double error(int64_t count) const;
};

SimulatedRun simulate_run(const RunQuestion& question, const Data& data, double most_effort,
                          const std::atomic<bool>& stop);

}  // namespace tutti

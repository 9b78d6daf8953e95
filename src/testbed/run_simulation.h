// When a run measures its quality: the run as it would be, simulated without arithmetic. What
// happens only now and then, and what workers do at a pace of their own, takes the time that it
// takes there.
#pragma once

#include <atomic>
#include <vector>

#include "jobs/job.h"

namespace tutti {

struct RunQuestion {
  Job job;
  double steps_each = 0;         // between two evaluations
  int64_t evaluations = 1;       // to the one that matters
  double effort_of_step = 1;     // messages and computations that a step has to be simulated for
  int64_t recurs_every = 1;      // steps, as the plan has it
  bool steps_are_alike = false;  // each takes the time of every other
};

struct SimulatedRun {
  std::vector<double> evaluated_s;  // when each of the first evaluations was over
  double interval_s = 0;            // from one to the next, for those beyond

  // When evaluation number `count`, from 1, is over.
  double when(int64_t count) const;
};

SimulatedRun simulate_run(const RunQuestion& question, const Data& data, double most_effort,
                          const std::atomic<bool>& stop);

}  // namespace tutti

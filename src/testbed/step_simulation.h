// What a step costs an architecture on a cluster: its real message schedule, simulated without
// arithmetic.
#pragma once

#include <atomic>

#include "jobs/job.h"

namespace tutti {

struct StepFigures {
  double step_s = 0;
  double step_error = 0;  // relative: half the spread over the seeds of the stragglers
  double watts = 0;       // of the whole cluster, while it trains
  double bytes = 0;       // sent by the node that sends most
  double messages = 0;    // of the same node
  double compute = 0, communicate = 0, aggregate = 0, wait = 0;  // shares of a node's time
  double busiest_link = 0;  // share of the time in which one direction of it is full
  int busiest_node = 0;     // whose link that is
  bool busiest_receives = false;
  int64_t nodes = 0;
};

bool has_chance(const ClusterConfig& cluster);  // stragglers that are drawn

// Takes the difference of two simulations, so that starting and evaluating do not count as steps.
// Throws Error when the run does not end well.
StepFigures simulate_steps(const Job& job, const Data& data, const std::atomic<bool>& stop);

}  // namespace tutti

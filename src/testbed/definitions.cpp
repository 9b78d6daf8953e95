#include "testbed/definitions.h"

#include <fmt/format.h>

#include "core/units.h"
#include "fabric/cluster.h"
#include "testbed/statistics.h"

namespace tutti {

std::map<std::string, std::string> comparison_definitions(bool several_seeds) {
  const ConvergenceRule rule;
  return {
      {"time_to_target",
       std::string("Seconds from before the first sample is read until the target is first "
                   "measured on validation samples, measuring included.") +
           (several_seeds ? " Mean over seeds, from 5 up without the fastest and the slowest, and "
                            "so are steps and samples to the target and convergence; no mean "
                            "unless every seed reached it."
                          : "")},
      {"convergence",
       fmt::format("The training loss is smoothed exponentially (weight 2/(W+1)). A best is a step "
                   "more than {:g} % below the best before; training has converged at the first "
                   "best that is not beaten for W steps and has {:g} % of the loss's whole fall "
                   "behind it. W is {:g} % of the run's steps, at most an epoch.",
                   100 * rule.tolerance, 100 * rule.fall_share, 100 * rule.window_share)},
      {"normalised",
       fmt::format("The seconds in which nodes compute or sum (mean over nodes) x speed of the "
                   "nodes / {}; all others, of the network above all, stay as they are. The speed "
                   "is that of a reference kernel measured on each node, or declared by a virtual "
                   "cluster.",
                   human_quantity(kReferenceFlops, Unit::kFlopsPerSecond))},
      {"quality",
       "Final test: on test samples, measured once, with the parameters that are kept: those of "
       "the end. Final val and best val: on validation samples, at the end and at best."},
      {"collapsed",
       "A run that ended with less than half of what it had gained: accuracy lost more than half "
       "of the way from chance (1 / classes) to its best on validation samples, or the squared "
       "error rose above its best by more than half of the larger of the best and what it had "
       "fallen by."},
      {"equal_samples",
       "Quality at the largest number of samples that every finished run has processed; between "
       "two measurements on the straight line between them."},
      {"equal_time",
       "Quality at the time at which the first of the finished runs ended, among runs on the same "
       "kind of clock; between two measurements on the straight line between them."},
      {"time_split",
       "Mean over nodes. Wait: blocked before the first byte of an exchange has arrived, a peer is "
       "late. Communicate: after it. Aggregate: sums and parameter updates."},
      {"staleness",
       "Updates that were missing from the parameters that an applied gradient was computed on."},
      {"age", "Seconds from reading the parameters to applying the gradient computed on them."},
      {"update_order",
       "Share of pairs of updates from different rounds that were applied in reverse order; 0 is "
       "the synchronous order."},
      {"energy",
       "Measured by the processor's counters, else estimated from load and rated power; simulated "
       "on virtual clusters from idle and busy hosts and links. One count per machine."},
      {"co2e", "Energy x carbon intensity of the grid."},
      {"cost", "Machines x time x price of a machine for an hour."},
      {"scaling_efficiency",
       "Samples per second / (workers x samples per second of solo on the same fabric), at the "
       "same global batch."},
      {"shared_curve",
       "Strategies that compute the same parameters share one learning curve: the gradients were "
       "computed once, times and bytes are each strategy's own."}};
}

}  // namespace tutti

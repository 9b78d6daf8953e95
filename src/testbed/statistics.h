// The statistics of a comparison: over seeds, along curves, and when training has converged. Plain
// functions of numbers; what they mean is said in docs/compare.md.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace tutti {

// One figure over the seeds of a strategy. A seed that has no such figure is empty.
struct Stat {
  std::optional<double> mean;  // empty when it would hide a seed that has none
  double min = 0, max = 0;     // of the seeds that have one
  std::vector<std::optional<double>> values;
};

// The plain mean over the seeds that have a value; empty when none has.
std::optional<Stat> statistic(const std::vector<std::optional<double>>& values);

// As MLPerf does it: from 5 seeds up the fastest and the slowest do not count. There is no mean
// unless every seed has a value: leaving out those that failed would flatter.
std::optional<Stat> olympic_statistic(const std::vector<std::optional<double>>& values);

// One point of a learning curve along some axis (samples, seconds).
struct CurvePoint {
  double x = 0;
  double y = 0;
};

// y at `x`, on the straight line between the measurements around it. Empty before the first
// measurement and after the last: nothing is known there.
std::optional<double> value_at(const std::vector<CurvePoint>& curve, double x);

struct ConvergenceRule {
  double tolerance = 0.01;    // relative
  double window_share = 0.1;  // of all steps; an epoch if that is shorter
  double fall_share = 0.9;    // of the fall of the loss over the whole run
};

// How many steps the rule looks ahead, and smooths over.
size_t convergence_window(const ConvergenceRule& rule, size_t steps, double steps_per_epoch);

// s(t) = s(t-1) + a (loss(t) - s(t-1)) with a = 2 / (window + 1), starting at the first loss.
std::vector<double> smoothed(const std::vector<double>& losses, size_t window);

// As early stopping counts: a step is a new best when its smoothed loss is more than `tolerance`
// below the last best. The first best that stays unbeaten for a whole window, as an index, once the
// loss has fallen by `fall_share` of what it falls by in all: many a loss rests before it falls.
// Empty: it never fell, it improved until the end, or too few steps are left to tell.
std::optional<size_t> converged_at(const std::vector<double>& losses, size_t window,
                                   double tolerance,
                                   double fall_share = ConvergenceRule{}.fall_share);

}  // namespace tutti

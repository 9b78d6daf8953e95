#include "testbed/run_simulation.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/error.h"
#include "testbed/cost_run.h"
#include "testbed/interval.h"

namespace tutti {
namespace {

// Intervals that are simulated where the whole run is too much, and the fewest steps of one that
// stands for longer ones. The first interval begins with nodes that start together.
struct Least {
  int64_t intervals = 4;          // as long as those of the run
  int64_t shorter_intervals = 6;  // where two of those are too much
  double steps = 8;
};
constexpr Least kWhereStepsAreAlike = {.intervals = 2, .shorter_intervals = 2, .steps = 2};
constexpr double kLonger = 4;  // times the shorter of two lengths: the more, the better they tell
// Intervals whose steps are off by this share of what they should be are not counted in steps.
constexpr double kOtherSteps = 0.5;

// What intervals hide that are alike, such as a rhythm longer than all of them: the deviation of
// what followed, as a share of its time. tests/testbed/advice_times_test.cpp says that it suffices.
constexpr double kHidden = 0.008;
constexpr double kHiddenByShorter = 0.02;

// Returns the first `count` evaluations, `steps` after one another. One more follows, because at
// the end of a run nodes wait for each other.
std::vector<EvaluationRow> evaluations_of(const RunQuestion& question, const Data& data,
                                          double steps, int64_t count,
                                          const std::atomic<bool>& stop) {
  Job job = question.job;
  const int64_t own_end = job.task.max_steps;
  job.task.max_steps = std::llround(std::ceil(steps * static_cast<double>(count + 1)));
  if (steps != question.steps_each) {
    job.task.eval_every *= steps / question.steps_each;
    job.task.epochs = 1 << 20;  // the steps decide
  } else if (own_end > 0) {
    job.task.max_steps = std::min(job.task.max_steps, own_end);
  }
  std::vector<EvaluationRow> rows = run_costs(job, data, stop).evaluations;
  if (rows.empty()) throw Error("a simulated run measured its quality nowhere");
  if (std::ssize(rows) > count) rows.resize(static_cast<size_t>(count));
  return rows;
}

// From one evaluation to the next, once the first is over.
struct Intervals {
  double mean_s = 0, mean_steps = 0;
  double deviation_s = 0;  // of what is not explained by their steps
  int64_t count = 0;
};

Intervals intervals_of(const std::vector<EvaluationRow>& rows) {
  const EvaluationRow &first = rows.front(), &last = rows.back();
  if (rows.size() == 1)
    return {.mean_s = first.time_s, .mean_steps = static_cast<double>(first.step), .count = 1};
  Intervals found{.count = std::ssize(rows) - 1};
  const auto count = static_cast<double>(found.count);
  if (last.step <= first.step) throw Error("a simulated run took no steps between evaluations");
  found.mean_s = (last.time_s - first.time_s) / count;
  found.mean_steps = static_cast<double>(last.step - first.step) / count;
  double squares = 0;
  for (size_t i = 1; i < rows.size(); ++i) {
    const double steps = static_cast<double>(rows[i].step - rows[i - 1].step);
    const double off =
        rows[i].time_s - rows[i - 1].time_s - found.mean_s * steps / found.mean_steps;
    squares += off * off;
  }
  if (found.count > 1) found.deviation_s = std::sqrt(squares / (count - 1));
  return found;
}

void end_with(const EvaluationRow& row, int64_t count, SimulatedRun& run) {
  run.end_s = row.time_s;
  run.end_step = static_cast<double>(row.step);
  run.end_count = count;
}

// The first evaluations as they are, and the rest like them. Where workers go at a pace of their
// own, the steps between evaluations may be others than the plan has: then as much time passes from
// one evaluation to the next, whatever its steps.
SimulatedRun first_evaluations(const RunQuestion& question, const Data& data, int64_t count,
                               const std::atomic<bool>& stop) {
  const std::vector<EvaluationRow> rows =
      evaluations_of(question, data, question.steps_each, count, stop);
  SimulatedRun run{.steps_each = question.steps_each};
  for (const EvaluationRow& row : rows) run.evaluated_s.push_back(row.time_s);
  if (std::ssize(rows) >= question.evaluations) return run;
  const Intervals found = intervals_of(rows);
  end_with(rows.back(), std::ssize(rows), run);
  if (std::abs(found.mean_steps - run.steps_each) > kOtherSteps * run.steps_each) {
    run.steps_each = found.mean_steps;
    run.end_step = found.mean_steps * static_cast<double>(run.end_count);
  }
  run.step_s = found.mean_s / found.mean_steps;
  run.wander_s = found.deviation_s;
  run.freedom = static_cast<int>(found.count) - 1;
  run.step_off_s =
      found.deviation_s / std::sqrt(static_cast<double>(found.count)) / found.mean_steps;
  run.hidden = kHidden;
  return run;
}

// Intervals of two lengths, both shorter than those of the run, tell the steps from the evaluation
// between them. Nothing where they do not have the steps that they were given: workers that hear
// too seldom of each other notice an evaluation late.
std::optional<SimulatedRun> shorter_intervals(const RunQuestion& question, const Data& data,
                                              double steps, int64_t count,
                                              const std::atomic<bool>& stop) {
  const Intervals shorter = intervals_of(evaluations_of(question, data, steps, count, stop));
  const std::vector<EvaluationRow> rows =
      evaluations_of(question, data, kLonger * steps, count, stop);
  const Intervals longer = intervals_of(rows);
  const double more_steps = longer.mean_steps - shorter.mean_steps;
  if (more_steps < kOtherSteps * (kLonger - 1) * steps) return std::nullopt;
  SimulatedRun run{.steps_each = question.steps_each};
  end_with(rows.back(), std::ssize(rows), run);
  run.step_s = std::max(0.0, (longer.mean_s - shorter.mean_s) / more_steps);
  run.evaluation_s = std::max(0.0, shorter.mean_s - shorter.mean_steps * run.step_s);
  run.wander_s = longer.deviation_s * std::sqrt(question.steps_each / longer.mean_steps);
  run.freedom = static_cast<int>(longer.count + shorter.count) - 2;
  run.step_off_s = std::hypot(longer.deviation_s, shorter.deviation_s) /
                   std::sqrt(static_cast<double>(longer.count)) / more_steps;
  run.hidden = kHiddenByShorter;
  return run;
}

}  // namespace

double SimulatedRun::when(int64_t count) const {
  if (count <= std::ssize(evaluated_s)) return evaluated_s[static_cast<size_t>(count - 1)];
  const double steps = steps_each * static_cast<double>(count) - end_step;
  return end_s + steps * step_s + static_cast<double>(count - end_count) * evaluation_s;
}

double SimulatedRun::error(int64_t count) const {
  if (count <= std::ssize(evaluated_s)) return 0;
  const double steps = std::abs(steps_each * static_cast<double>(count) - end_step);
  const double seen_s = std::hypot(wander_s * std::sqrt(steps / steps_each), steps * step_off_s);
  return std::hypot(t_of_90_percent(freedom) * seen_s,
                    kNormalOf90Percent * hidden * (when(count) - end_s)) /
         when(count);
}

SimulatedRun simulate_run(const RunQuestion& question, const Data& data, double most_effort,
                          const std::atomic<bool>& stop) {
  const Least least = question.steps_are_alike ? kWhereStepsAreAlike : Least{};
  const double affordable_steps = most_effort / question.effort_of_step;
  const auto affordable = static_cast<int64_t>(affordable_steps / question.steps_each) - 1;
  // Of the shorter intervals, whole numbers of what recurs.
  const auto period = static_cast<double>(question.recurs_every);
  const double share =
      affordable_steps / ((1 + kLonger) * static_cast<double>(least.shorter_intervals + 1));
  const double steps = period * std::ceil(std::max(least.steps, share) / period);
  if (affordable < std::min<int64_t>(question.evaluations, 2) &&
      kLonger * steps < question.steps_each)
    if (auto run = shorter_intervals(question, data, steps, least.shorter_intervals, stop))
      return *run;
  const int64_t count = std::min(question.evaluations, std::max(affordable, least.intervals));
  return first_evaluations(question, data, count, stop);
}

}  // namespace tutti

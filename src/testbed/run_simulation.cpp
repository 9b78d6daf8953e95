#include "testbed/run_simulation.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "testbed/cost_run.h"

namespace tutti {
namespace {

// Intervals that are simulated where the whole run is too much, and the fewest steps of one that
// stands for longer ones. The first interval begins with nodes that start together.
struct Least {
  int64_t intervals = 6;
  double steps = 4;
};
constexpr Least kWhereStepsAreAlike = {.intervals = 2, .steps = 2};

// Returns when each of `count` evaluations was over, `steps` after one another. One more follows,
// because at the end of a run nodes wait for each other.
std::vector<double> evaluation_times(const RunQuestion& question, const Data& data, double steps,
                                     int64_t count, const std::atomic<bool>& stop) {
  Job job = question.job;
  const int64_t own_end = job.task.max_steps;
  job.task.max_steps = std::llround(std::ceil(steps * static_cast<double>(count + 1)));
  if (steps != question.steps_each) {
    job.task.eval_every *= steps / question.steps_each;
    job.task.epochs = 1 << 20;  // the steps decide
  } else if (own_end > 0) {
    job.task.max_steps = std::min(job.task.max_steps, own_end);
  }
  const RunRecord record = run_costs(job, data, stop);
  std::vector<double> times;
  for (const EvaluationRow& row : record.evaluations)
    if (std::ssize(times) < count) times.push_back(row.time_s);
  return times;
}

// From one evaluation to the next, once the first is over.
double interval_of(const std::vector<double>& times) {
  if (times.empty()) throw Error("a simulated run measured its quality nowhere");
  if (times.size() == 1) return times.front();
  return (times.back() - times.front()) / static_cast<double>(times.size() - 1);
}

}  // namespace

double SimulatedRun::when(int64_t count) const {
  const auto known = std::ssize(evaluated_s);
  if (count <= known) return evaluated_s[static_cast<size_t>(count - 1)];
  const double last_s = known > 0 ? evaluated_s.back() : 0;
  return last_s + static_cast<double>(count - known) * interval_s;
}

SimulatedRun simulate_run(const RunQuestion& question, const Data& data, double most_effort,
                          const std::atomic<bool>& stop) {
  const Least least = question.steps_are_alike ? kWhereStepsAreAlike : Least{};
  const double affordable_steps = most_effort / question.effort_of_step;
  const auto affordable = static_cast<int64_t>(affordable_steps / question.steps_each) - 1;
  // Of the shorter intervals, whole numbers of what recurs.
  const auto period = static_cast<double>(question.recurs_every);
  const double wanted =
      std::max(least.steps, affordable_steps / static_cast<double>(3 * (least.intervals + 1)));
  const double steps = period * std::ceil(wanted / period);
  SimulatedRun run;
  if (affordable >= std::min(question.evaluations, least.intervals) ||
      2 * steps >= question.steps_each) {
    const int64_t count = std::min(question.evaluations, std::max(affordable, least.intervals));
    run.evaluated_s = evaluation_times(question, data, question.steps_each, count, stop);
    if (std::ssize(run.evaluated_s) < question.evaluations)
      run.interval_s = interval_of(run.evaluated_s);
    return run;
  }
  // Two lengths tell the steps from the evaluation between them.
  const double short_s =
      interval_of(evaluation_times(question, data, steps, least.intervals, stop));
  const double long_s =
      interval_of(evaluation_times(question, data, 2 * steps, least.intervals, stop));
  const double step_s = std::max(0.0, (long_s - short_s) / steps);
  const double evaluation_s = std::max(0.0, short_s - steps * step_s);
  run.interval_s = question.steps_each * step_s + evaluation_s;
  return run;
}

}  // namespace tutti

#include "testbed/time_to_target.h"

#include <algorithm>
#include <numeric>

#include "testbed/run_simulation.h"
#include "testbed/seed_data.h"
#include "testbed/step_simulation.h"

namespace tutti {
namespace {

// What a step has to be simulated for: the messages of all nodes, and a computation on each.
double effort_of_step(const Plan& plan) {
  double effort = 0;
  for (const NodePlan& node : plan.nodes) effort += 1 + node.messages;
  return effort;
}

// Some choose their peers or clients by chance, some follow whoever is first.
bool differs_by_seed(const Job& job, const Plan& plan) {
  return plan.equivalence.empty() || has_chance(job.cluster);
}

}  // namespace

double TimesToTarget::mean_s() const {
  return std::accumulate(times_s.begin(), times_s.end(), 0.0) / static_cast<double>(times_s.size());
}

TimesToTarget times_to_target(const Job& job, const Plan& plan, const Learning& learning,
                              const Data& data, double most_effort, const std::atomic<bool>& stop) {
  RunQuestion question{.job = job,
                       .steps_each = learning.steps / learning.evaluations,
                       .effort_of_step = effort_of_step(plan),
                       .recurs_every = plan.recurs_every,
                       .steps_are_alike = !differs_by_seed(job, plan) && plan.settling_steps == 0};
  const auto later = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto last = std::max_element(learning.reached_at.begin(), learning.reached_at.end(), later);
  question.evaluations = last->second;
  SimulatedRun run;
  TimesToTarget result;
  for (const auto& [seed, evaluation] : learning.reached_at) {
    if (result.times_s.empty() || differs_by_seed(job, plan)) {
      question.job.task.seed = job.task.seed + static_cast<uint64_t>(seed);
      if (differs_by_seed(job, plan)) question.evaluations = evaluation;
      run = simulate_run(question, data_of_seed(question.job, data), most_effort, stop);
    }
    result.times_s.push_back(run.when(evaluation));
    result.error = std::max(result.error, run.error(evaluation));
  }
  return result;
}

}  // namespace tutti

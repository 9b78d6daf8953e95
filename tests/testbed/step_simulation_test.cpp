// The figures of a step: they stand for a whole run, also where messages are under way for longer
// than a step takes, and where nodes talk only every so many steps.
#include "testbed/step_simulation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "jobs/resolve.h"
#include "testbed/cost_run.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;

const std::atomic<bool> kGoOn{false};

Job small_task(const Settings& settings) {
  return load_job("", Settings{"task.data.kind=synthetic-classes", "task.data.samples=2000",
                               "task.data.features=16", "task.model.kind=logistic",
                               "task.global_batch=40", "cluster.fabric=virtual",
                               "cluster.workers=4", "cluster.bandwidth=\"100 Mbit/s\""} +
                          settings);
}

double seconds_of(Job job, const Data& data, int64_t steps) {
  job.task.max_steps = steps;
  job.task.epochs = 1 << 20;
  job.task.eval_every = 1e9;
  const RunRecord record = run_costs(job, data, kGoOn);
  double most_s = 0;
  for (const NodeReport& node : record.nodes) most_s = std::max(most_s, node.total_s);
  return most_s;
}

// The time of a step on average, between two runs so that their ends do not count.
double step_of_runs(const Job& job, const Data& data, int64_t fewer, int64_t more) {
  return (seconds_of(job, data, more) - seconds_of(job, data, fewer)) /
         static_cast<double>(more - fewer);
}

TEST(LongSteps, SeesStepsThroughSlowNetworks) {
  for (const char* kind : {"gossip", "elastic_averaging"}) {
    Job job = small_task(
        {"cluster.latency=\"40 ms\"", std::string("strategy.kind=") + kind, "strategy.mode=async"});
    const Data data = resolve(job).data;
    const double step_s = simulate_steps(job, data, kGoOn).step_s;
    // Nodes at a pace of their own end at different times: up to a latency more or less of the
    // 0.2 s by which these runs differ.
    EXPECT_NEAR(step_s, step_of_runs(job, data, 2000, 12'000), 0.3 * step_s) << kind;
  }
}

TEST(LongSteps, CountsWhatHappensEverySoManySteps) {
  Job job =
      small_task({"cluster.latency=\"1 ms\"", "strategy.kind=local_sgd", "strategy.sync_every=16"});
  const Data data = resolve(job).data;
  const StepFigures figures = simulate_steps(job, data, kGoOn);
  EXPECT_GT(figures.bytes, 0);
  EXPECT_LT(figures.compute, 0.9);
  EXPECT_NEAR(figures.step_s, step_of_runs(job, data, 160, 1600), 0.05 * figures.step_s);
}

}  // namespace
}  // namespace tutti

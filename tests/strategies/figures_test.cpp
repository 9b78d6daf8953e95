// Checks single figures of the record that once were wrong: energy without the reading of data, a
// rate that did not fall until the end, the loss of one worker's share instead of the batch's.
#include <gtest/gtest.h>

#include <map>

#include "tests/strategies/series_file.h"
#include "tests/support/parameters.h"

namespace tutti {
namespace {

using namespace testing_support;

// The machine draws at least its idle power all the time, and most of that time it reads data.
TEST(Energy, CountsTheReadingOfData) {
  const RunRecord record =
      run(logistic_task() + Settings{"task.data.samples=400000", "task.data.limit=100",
                                     "task.max_steps=1", "footprint.tdp=40", "footprint.price=3.6",
                                     "cluster.workers=1", "strategy.kind=solo"});
  ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
  EXPECT_GT(record.data_s, record.nodes[0].total_s);
  EXPECT_GT(record.data_cpu_s, record.nodes[0].cpu_s);
  EXPECT_NEAR(record.cost.on_demand.value, 1e-3 * (record.data_s + record.nodes[0].total_s), 1e-9);
  if (!record.energy_method.starts_with("estimated")) GTEST_SKIP() << record.energy_method;
  EXPECT_GE(record.joules, 14 * (record.data_s + record.nodes[0].total_s));
}

// The rate falls until the end of the run, wherever that is.
TEST(CosineSchedule, EndsAtTheLastStep) {
  const TemporaryFolder folder;
  const std::map<std::string, Settings> strategies = {
      {"solo", {"strategy.kind=solo"}},
      {"ring", {"strategy.kind=allreduce"}},
      {"local", {"strategy.kind=local_sgd"}},
      {"gossip", {"strategy.kind=gossip", "strategy.mode=async"}},
      {"servers", {"strategy.kind=parameter_server"}},
      {"federated", {"strategy.kind=federated_averaging"}}};
  for (const auto& [name, settings] : strategies) {
    const RunRecord record = run(logistic_task() + settings +
                                     Settings{"cluster.fabric=virtual", "task.epochs=50",
                                              "task.max_steps=4", "optimizer.schedule=cosine"},
                                 folder / name);
    ASSERT_EQ(record.status, RunStatus::kDone) << name << record.error;
    const auto rows = read_series(folder / name + "/series.csv");
    EXPECT_LT(rows.back()[3], 0.5 * rows.front()[3]) << name;
  }
}

// The loss of a step is that of its batch, however many workers share it.
TEST(BatchLoss, DoesNotDependOnTheNumberOfWorkers) {
  const TemporaryFolder folder;
  const auto losses = [&](const std::string& name, const Settings& settings) {
    const RunRecord record = run(logistic_task() + settings, folder / name);
    EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
    return read_series(folder / name + "/series.csv");
  };
  const auto alone = losses("solo", {"strategy.kind=solo", "cluster.fabric=virtual"});
  ASSERT_EQ(alone.size(), 11u);
  const Settings four = {"cluster.workers=4"};
  const std::map<std::string, Settings> others = {
      {"ring", {"strategy.kind=allreduce", "cluster.fabric=virtual"}},
      {"processes", {"strategy.kind=allreduce", "cluster.fabric=process"}},
      {"servers", {"strategy.kind=parameter_server", "cluster.fabric=virtual"}},
      {"many", {"strategy.kind=allreduce", "cluster.fabric=virtual", "cluster.workers=37"}}};
  for (const auto& [name, settings] : others) {
    const auto shared = losses(name, four + settings);
    ASSERT_EQ(shared.size(), alone.size()) << name;
    for (size_t i = 0; i < alone.size(); ++i)
      EXPECT_NEAR(shared[i][2], alone[i][2], 1e-5 * alone[i][2]) << name << " step " << i + 1;
  }
}

}  // namespace
}  // namespace tutti

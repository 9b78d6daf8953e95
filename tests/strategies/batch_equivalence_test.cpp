// Equivalence where batches are not all alike: the last one smaller than the workers, and batches
// that grow from epoch to epoch.
#include <gtest/gtest.h>

#include "tests/strategies/equivalence.h"

namespace tutti {
namespace {

using namespace testing_support;

struct Where {
  std::string topology, fabric;
  int workers;
  Settings settings() const {
    const Settings strategy = {"strategy.kind=allreduce", "strategy.topology=" + topology};
    return strategy + network_for(strategy, fabric, workers);
  }
};

// Its first node speaks for all: checksum() compares the parameters of every worker.
NodeReport first_node(const Settings& settings) {
  const RunRecord record = run(settings);
  EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
  return record.nodes.empty() ? NodeReport{} : record.nodes.front();
}

void expect_bitwise_solo(const Settings& task, const std::vector<Where>& places) {
  const std::string expected = checksum(task + solo() + on("process", 1));
  for (const Where& place : places)
    EXPECT_EQ(checksum(task + place.settings()), expected)
        << place.topology << " on " << place.fabric << " with " << place.workers << " workers";
}

// 97 of 389 samples at a time leave one for the last step: all lanes but one are empty, and all
// workers but one have nothing to do.
TEST(EquivalenceBatches, ALastBatchSmallerThanWorkersAndLanesIsBitwiseSolo) {
  const Settings task =
      logistic_task() + kDeterministic + Settings{"task.global_batch=97", "task.epochs=2"};
  const NodeReport alone = first_node(task + solo() + on("virtual", 1));
  ASSERT_EQ(alone.samples / 2 % 97, 1) << "this is what is tested";
  ASSERT_EQ(alone.steps, 2 * (alone.samples / 2 / 97 + 1)) << "the last batch counts";
  expect_bitwise_solo(task, {{"ring", "virtual", 1},
                             {"ring", "virtual", 2},
                             {"butterfly", "virtual", 3},
                             {"ring", "virtual", 8},
                             {"hierarchical", "virtual", 8},
                             {"tree", "virtual", 16},
                             {"all_to_all", "process", 3},
                             {"direct", "process", 8}});
}

// Every epoch has batches of twice the size: 37, 74 and 148 samples.
TEST(EquivalenceBatches, AGrowingBatchIsBitwiseSoloAndTakesFewerSteps) {
  const Settings constant = logistic_task() + kDeterministic + Settings{"task.epochs=3"};
  const Settings growing =
      constant + Settings{"optimizer.schedule=grow_batch", "optimizer.step_factor=0.5"};
  expect_bitwise_solo(
      growing, {{"ring", "virtual", 1}, {"direct", "process", 8}, {"butterfly", "virtual", 8}});
  const Where eight{"ring", "virtual", 8};
  const NodeReport before = first_node(constant + eight.settings());
  const NodeReport after = first_node(growing + eight.settings());
  EXPECT_NE(after.parameters_sha256, before.parameters_sha256);
  EXPECT_EQ(after.samples, before.samples) << "every sample once in each epoch";
  const int64_t train = after.samples / 3;
  int64_t steps = 0;
  for (const int64_t batch : {37, 74, 148}) steps += (train + batch - 1) / batch;
  EXPECT_EQ(after.steps, steps);
  EXPECT_LT(after.steps, before.steps);
}

}  // namespace
}  // namespace tutti

// Load-balanced all-reduce: how a batch is cut, and that a slow node no longer sets the pace.
#include <gtest/gtest.h>

#include "strategies/balance.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;

TEST(PartByShares, CoversAllAndLeavesNobodyOut) {
  for (const std::vector<double>& shares : {std::vector<double>{1},
                                            {0.5, 0.5},
                                            {0.9, 0.1},
                                            {1, 0},
                                            {0, 1},
                                            {0, 0, 1},
                                            {0, 1, 0},
                                            {0.3, 0.3, 0.4}})
    for (const size_t count : {0u, 1u, 2u, 3u, 4u, 37u, 128u}) {
      size_t end = 0;
      for (size_t i = 0; i < shares.size(); ++i) {
        const Range part = part_by_shares(count, shares, i);
        EXPECT_EQ(part.begin, end);
        EXPECT_TRUE(count < shares.size() || !part.empty());
        end = part.end;
      }
      EXPECT_EQ(end, count);
    }
}

TEST(PartByShares, FollowsTheShares) {
  const std::vector<double> shares = {0.25, 0.5, 0.25};
  EXPECT_EQ(part_by_shares(103, shares, 0), (Range{0, 26}));
  EXPECT_EQ(part_by_shares(103, shares, 1), (Range{26, 77}));
  EXPECT_EQ(part_by_shares(103, shares, 2), (Range{77, 103}));
}

// Computing takes all of the time here: the network is fast and the parameters are few.
Settings one_slow_worker_of_four(double factor) {
  return {
      "task.data.kind=synthetic-classes",
      "task.data.samples=64000",
      "task.data.validation=0.001",
      "task.data.features=16",
      "task.data.classes=4",
      "task.model=logistic",
      "task.global_batch=400",
      "optimizer.lr=0.1",
      "strategy.kind=allreduce",
      "cluster.fabric=virtual",
      "cluster.workers=4",
      "cluster.speed=1 MFLOP/s",
      "cluster.step_overhead=0",  // it does not depend on shares
      "cluster.layer_overhead=0",
      "cluster.bandwidth=100 Gbit/s",
      "cluster.latency=1 us",
      "cluster.stragglers=[{kind=\"constant\", node=2, factor=" + std::to_string(factor) + "}]"};
}

NodeReport train(const Settings& settings) {
  const RunRecord record = run(settings);
  EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
  return record.nodes[0];
}

double training_s(const Settings& settings) { return train(settings).evaluations.back().time_s; }

// Three workers at speed 1 and one at 1/f do 3 + 1/f per unit of time, with equal shares 4/f. The
// first four steps have equal shares. Samples are whole: one in 57 (f = 2) or 31 (f = 4) is at most
// half too much, below 2 %; measuring quality takes the rest.
TEST(Balance, ASlowWorkerNoLongerSetsThePace) {
  for (const double factor : {2.0, 4.0}) {
    const Settings task = one_slow_worker_of_four(factor);
    const NodeReport equal = train(task);
    const double gain =
        equal.evaluations.back().time_s / training_s(task + Settings{"strategy.balance=true"});
    const double most = (3 + 1 / factor) / (4 / factor);
    const auto steps = static_cast<double>(equal.steps);
    EXPECT_GT(gain, 0.97 * most * steps / (steps - 4 + 4 * most)) << "factor " << factor;
    EXPECT_LE(gain, most) << "factor " << factor;
  }
}

TEST(Balance, CostsHardlyAnythingAmongEquals) {
  const Settings task = one_slow_worker_of_four(1);
  EXPECT_LT(training_s(task + Settings{"strategy.balance=true"}), 1.01 * training_s(task));
}

// A comparison skips the arithmetic of those whose learning is known: shares must not depend on it.
TEST(Balance, TakesAsLongWhereOnlyCostsCount) {
  const Settings task = one_slow_worker_of_four(2) + Settings{"strategy.balance=true"};
  EXPECT_EQ(training_s(task), training_s(task + Settings{"cluster.cost_only=true"}));
}

TEST(Balance, IsBitwiseSoloWithUnequalShares) {
  const Settings task =
      one_slow_worker_of_four(3) + Settings{"task.data.samples=4000", "task.deterministic=true"};
  EXPECT_EQ(checksum(task + Settings{"strategy.balance=true"}),
            checksum(task +
                     Settings{"strategy.kind=solo", "cluster.workers=1", "cluster.stragglers=[]"}));
}

// Two of eight at half speed: the others take 1/7 instead of 1/8 of a batch.
TEST(Balance, TheFastestNeedMoreMemory) {
  const Settings task = {"task.data.kind=synthetic-classes",
                         "task.model.kind=mlp",
                         "task.model.hidden=[64]",
                         "task.global_batch=560",
                         "cluster.fabric=virtual",
                         "cluster.workers=8",
                         "cluster.step_overhead=0",
                         "cluster.layer_overhead=0",
                         "cluster.speed_factors=[1, 1, 1, 0.5, 1, 1, 0.5, 1]"};
  const auto memory = [&](const Settings& more) {
    Job job = load_job("", task + more);
    return resolve(job).plan.most_memory_bytes();
  };
  const double one_more = memory({"task.global_batch=568"}) - memory({});  // a sample for each
  EXPECT_NEAR(memory({"strategy.balance=true"}) - memory({}), 10 * one_more, 1e-6 * one_more);
}

TEST(Balance, NeedsSamplesThatAnybodyMayCompute) {
  EXPECT_EQ(refusal(logistic_task() + Settings{"strategy.kind=allreduce", "strategy.balance=true",
                                               "task.partition=disjoint"})
                .substr(0, 17),
            "strategy.balance:");
}

}  // namespace
}  // namespace tutti

// What happens every so many epochs: at the multiples of any period, however short.
#include <gtest/gtest.h>

#include "strategies/task.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;

TEST(Rhythm, TheNextMultipleIsDue) {
  EXPECT_EQ(next_due(1, 0), 1);
  EXPECT_EQ(next_due(1, 0.5), 1);
  EXPECT_EQ(next_due(1, 1), 2);
  EXPECT_EQ(next_due(0.5, 0.75), 1);
  EXPECT_EQ(next_due(0.25, 2), 2.25);
  EXPECT_EQ(next_due(1000, 3), 1000);
  EXPECT_DOUBLE_EQ(next_due(0.1, 0.1 + 0.1 + 0.1), 0.4);  // more than 3 * 0.1
  EXPECT_DOUBLE_EQ(next_due(0.1, 0.3 - 1e-12), 0.4);      // reached, but for rounding
}

// As it was counted before, one period after the other.
TEST(Rhythm, EverySumOfPeriodsIsAMultiple) {
  for (const double every : {0.1, 0.3, 1.0 / 3, 0.7, 1.5})
    for (double epoch = 0; epoch < 20; epoch += 1.0 / 11) {
      double counted = every;
      while (counted <= epoch + 1e-9) counted += every;
      EXPECT_NEAR(next_due(every, epoch), counted, 1e-12) << every << " at " << epoch;
    }
}

TEST(Rhythm, ItIsAlwaysAhead) {
  for (const double every : {1e-307, 1e-300, 1e-12, 1e-9, 1e-6, 1e-3, 1.0, 1e300})
    for (const double epoch : {1e-3, 1.0, 1234.5, 1e6}) {
      EXPECT_GT(next_due(every, epoch), epoch + 1e-9) << every << " at " << epoch;
      EXPECT_LE(next_due(every, epoch), epoch + every + 1e-8) << every << " at " << epoch;
    }
}

// A period much shorter than a step is every step, and takes no longer.
TEST(Rhythm, PeriodsShorterThanAStep) {
  for (const char* strategy : {"solo", "allreduce", "local_sgd", "model_averaging", "gossip",
                               "elastic_averaging", "parameter_server", "federated_averaging"})
    for (const char* every : {"1e-300", "1e-9"}) {
      const RunRecord record =
          run(logistic_task() + Settings{std::string("strategy.kind=") + strategy,
                                         "cluster.fabric=virtual", "task.max_steps=4",
                                         std::string("task.eval_every=") + every});
      EXPECT_EQ(record.status, "done") << strategy << ": " << record.error;
    }
  const RunRecord record =
      run(logistic_task() +
          Settings{"cluster.fabric=virtual", "task.max_steps=4", "task.eval_every=1e-300"});
  EXPECT_EQ(record.nodes.front().evaluations.size(), 4u);
}

TEST(Rhythm, MergesAfterEveryStep) {
  const auto bytes = [](const char* every) {
    const RunRecord record =
        run(logistic_task() + Settings{"strategy.kind=model_averaging", "cluster.fabric=virtual",
                                       std::string("strategy.merge_every=") + every});
    EXPECT_EQ(record.status, "done") << record.error;
    return record.nodes.back().bytes_sent;
  };
  EXPECT_EQ(bytes("1e-300"), bytes("0.01"));  // an epoch has 11 steps
  EXPECT_GT(bytes("1e-300"), bytes("0.5"));
}

}  // namespace
}  // namespace tutti

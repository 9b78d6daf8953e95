// What happens every so many epochs: at the multiples of any period, however short.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "strategies/evaluation.h"
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
      EXPECT_EQ(record.status, RunStatus::kDone) << strategy << ": " << record.error;
    }
  const RunRecord record =
      run(logistic_task() +
          Settings{"cluster.fabric=virtual", "task.max_steps=4", "task.eval_every=1e-300"});
  EXPECT_EQ(record.evaluations.size(), 4u);
}

// Measuring takes time, also where nothing is computed: a forward pass over the validation samples.
TEST(Rhythm, EvaluationsCountInVirtualTime) {
  const Settings job =
      logistic_task() + Settings{"cluster.fabric=virtual",  "cluster.workers=1",
                                 "strategy.kind=solo",      "cluster.cost_only=true",
                                 "cluster.speed=1 GFLOP/s", "task.max_steps=10"};
  const auto compute_s = [&](const char* every, size_t evaluations) {
    const RunRecord record = run(job + Settings{std::string("task.eval_every=") + every});
    EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
    EXPECT_EQ(record.evaluations.size(), evaluations);
    return record.nodes.front().compute_s;
  };
  const Job loaded = load_job("", job);
  const Resolved resolved = resolve(loaded);
  const size_t samples = resolved.data.splits.validation.size();
  const auto chunks = static_cast<double>(evaluation_chunks(samples));
  const auto layers = static_cast<double>(resolved.architecture.layers.size());
  const double one_s = static_cast<double>(samples) * resolved.architecture.forward_flops() / 1e9 +
                       overhead_of(loaded.cluster, 0, chunks, chunks * layers);
  EXPECT_GT(one_s, 0);
  EXPECT_NEAR(compute_s("1e-9", 10) - compute_s("1000", 1), 9 * one_s, 1e-6 * one_s);
}

// The target is a matter of the validation samples, the final quality of the test samples: shares
// of one are no shares of the other.
TEST(Rhythm, QualityIsMeasuredOnValidationAndTheFinalOneOnTestSamples) {
  for (const std::string strategy :
       {"solo", "allreduce", "parameter_server", "gossip", "pipeline"}) {
    const bool alone = strategy == "solo" || strategy == "pipeline";
    const Settings job =
        logistic_task() +
        Settings{"task.data.samples=118",     "task.data.validation=0.0655",
                 "task.data.test=0.0933",     "task.max_steps=3",
                 "task.eval_every=1e-9",      "cluster.fabric=virtual",
                 "strategy.kind=" + strategy, alone ? "cluster.workers=1" : "cluster.workers=2"};
    const Splits splits = resolve(load_job("", job)).data.splits;
    ASSERT_EQ(std::gcd(splits.validation.size(), splits.test.size()), 1U);
    const RunRecord record = run(job);
    ASSERT_EQ(record.status, RunStatus::kDone) << strategy << ": " << record.error;
    const auto expect_share = [&](double quality, size_t of) {
      const double count = quality * static_cast<double>(of);
      EXPECT_NEAR(count, std::round(count), 1e-5) << strategy << ": " << quality;
      EXPECT_TRUE(quality > 0 && quality < 1) << strategy << ": tells nothing";
    };
    for (const NodeReport& node : record.nodes)
      for (const EvaluationRow& row : node.evaluations)
        expect_share(row.quality, splits.validation.size());
    expect_share(record.nodes.front().test_quality, splits.test.size());
  }
}

TEST(Rhythm, MergesAfterEveryStep) {
  const auto bytes = [](const char* every) {
    const RunRecord record =
        run(logistic_task() + Settings{"strategy.kind=model_averaging", "cluster.fabric=virtual",
                                       std::string("strategy.merge_every=") + every});
    EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
    return record.nodes.back().bytes_sent;
  };
  EXPECT_EQ(bytes("1e-300"), bytes("0.01"));  // an epoch has 11 steps
  EXPECT_GT(bytes("1e-300"), bytes("0.5"));
}

}  // namespace
}  // namespace tutti

// Model averaging against a hand computation, and what it costs.
#include <gtest/gtest.h>

#include "tests/support/linear_reference.h"

namespace tutti {
namespace {

using namespace testing_support;

Settings workers(const std::string& fabric, int count) {
  return {"strategy.kind=model_averaging", "cluster.fabric=" + fabric,
          "cluster.workers=" + std::to_string(count)};
}

// Merged after the first step past half of the epoch, and at the end.
TEST(ModelAveraging, MergesByHand) {
  for (const char* fabric : {"virtual", "process"}) {
    const Settings settings =
        linear_task() + workers(fabric, 3) + Settings{"strategy.merge_every=0.5"};
    const LinearReference reference(settings);
    const int64_t half = (reference.steps() + 1) / 2;
    Vector merged = reference.initial();
    for (const auto& [from, to] : {std::pair(int64_t{0}, half), {half, reference.steps()}}) {
      Vector sum(merged.size());
      for (int64_t worker = 0; worker < 3; ++worker) {
        Vector x = merged;
        for (int64_t step = from; step < to; ++step) x = reference.stepped(step, worker, x);
        for (size_t k = 0; k < x.size(); ++k) sum[k] += x[k] / 3;
      }
      merged = sum;
    }
    expect_close(parameters_after(settings), merged);
  }
}

TEST(ModelAveraging, OnceSendsTwoModelsPerWorkerAndMeasuresOnce) {
  const RunRecord record = run(linear_task() + workers("virtual", 4) +
                               Settings{"strategy.merge_every=0", "task.epochs=3",
                                        "task.data.features=800", "optimizer.lr=0.001"});
  ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
  EXPECT_EQ(record.evaluations.size(), 1u);
  const uint64_t model = 801 * sizeof(float);
  EXPECT_GE(record.nodes[0].bytes_sent, 3 * model);
  EXPECT_LT(record.nodes[0].bytes_sent, 3 * model + 512);  // and a few shares of the evaluation
  EXPECT_GE(record.nodes[3].bytes_sent, model);
  EXPECT_LT(record.nodes[3].bytes_sent, model + 512);
}

// Compares the bytes of the node that sends most, per step, between two lengths of a run.
TEST(StepCost, OfAveragesIsWhatIsSent) {
  struct Case {
    Settings strategy;
    int64_t shorter, longer;  // both end where a model was exchanged
  };
  const Case cases[] = {
      {{"strategy.kind=model_averaging", "strategy.merge_every=0.5"}, 4, 12},
      {{"strategy.kind=model_averaging", "strategy.merge_every=1"}, 8, 16},
      {{"strategy.kind=model_averaging", "strategy.merge_every=0.01"}, 2, 12},
      {{"strategy.kind=local_sgd", "strategy.sync_every=4"}, 4, 12},
      {{"strategy.kind=elastic_averaging", "strategy.mode=sync", "strategy.sync_every=4"}, 4, 12},
      {{"strategy.kind=gossip", "strategy.mode=sync", "strategy.graph=ring"}, 4, 12},
  };
  for (const Case& each : cases) {
    const Settings settings =
        logistic_task() + each.strategy +
        Settings{"task.data.features=300", "task.global_batch=49",  // 8 steps
                 "task.epochs=3",          "cluster.fabric=virtual", "cluster.workers=4",
                 "cluster.cost_only=true", "task.eval_every=1000"};
    const auto sent = [&](int64_t steps) {
      const RunRecord record = run(settings + Settings{"task.max_steps=" + std::to_string(steps)});
      EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
      double most = 0;
      for (const NodeReport& node : record.nodes)
        most = std::max(most, static_cast<double>(node.bytes_sent));
      return most;
    };
    const Job job =
        load_job("", settings + Settings{"task.max_steps=" + std::to_string(each.longer)});
    const Resolved resolved = resolve(job);
    const size_t samples = resolved.data.splits.train.size();
    ASSERT_EQ((samples + 48) / 49, 8u);
    const double predicted = resolved.plan.busiest().bytes_sent;
    EXPECT_DOUBLE_EQ(predicted, (sent(each.longer) - sent(each.shorter)) /
                                    static_cast<double>(each.longer - each.shorter))
        << each.strategy[0] << each.strategy[1];
  }
}

TEST(ModelAveraging, EveryWorkerEndsWithTheSameParameters) {
  for (const char* fabric : {"virtual", "process"})
    checksum(logistic_task() + workers(fabric, 3) + Settings{"strategy.merge_every=0.3"});
}

TEST(ModelAveraging, OneWorkerTrainsAlone) {
  EXPECT_EQ(
      parameters_after(logistic_task() + workers("virtual", 1)),
      parameters_after(logistic_task() + Settings{"strategy.kind=solo", "cluster.fabric=virtual",
                                                  "cluster.workers=1"}));
}

}  // namespace
}  // namespace tutti

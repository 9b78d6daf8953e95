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
  ASSERT_EQ(record.status, "done") << record.error;
  EXPECT_EQ(record.nodes[0].evaluations.size(), 1u);
  const uint64_t model = 801 * sizeof(float);
  EXPECT_GE(record.nodes[0].bytes_sent, 3 * model);
  EXPECT_LT(record.nodes[0].bytes_sent, 3 * model + 512);  // and a few shares of the evaluation
  EXPECT_GE(record.nodes[3].bytes_sent, model);
  EXPECT_LT(record.nodes[3].bytes_sent, model + 512);
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

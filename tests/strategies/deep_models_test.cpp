// Models with residual blocks and answers at every position are equivalent across strategies, too.
#include <gtest/gtest.h>

#include <fstream>

#include "core/random.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;

Settings transformer_task(const TemporaryFolder& folder) {
  std::ofstream text(folder / "text");
  Random random(1, Stream::kTest);
  for (int i = 0; i < 1500; ++i) text << "abcde \n"[random.below(7)];
  return {"task.data.kind=tokens",   "task.data.path=" + (folder / "text"),
          "task.data.context=12",    "task.model.kind=transformer",
          "task.model.width=8",      "task.model.depth=1",
          "task.model.heads=2",      "task.model.dropout=0.1",
          "task.global_batch=17",    "task.epochs=1",
          "task.deterministic=true", "optimizer.kind=adam",
          "optimizer.lr=0.01",       "cluster.timeout=60"};
}

const Settings kSolo = {"strategy.kind=solo", "cluster.workers=1", "cluster.fabric=process"};
const Settings kRing = {"strategy.kind=allreduce", "strategy.topology=ring"};

TEST(DeepModels, TransformerIsBitwiseSoloOnAnyNumberOfWorkers) {
  const TemporaryFolder folder;
  const Settings task = transformer_task(folder);
  const std::string expected = checksum(task + kSolo);
  EXPECT_EQ(checksum(task + kRing + Settings{"cluster.fabric=virtual", "cluster.workers=3"}),
            expected);
  EXPECT_EQ(checksum(task + kRing + Settings{"cluster.fabric=process", "cluster.workers=2"}),
            expected);
}

// Dropout masks are keyed by sample and layer, so it does not matter on which node a layer is.
TEST(DeepModels, TransformerIsBitwiseSoloInAnyNumberOfStages) {
  const TemporaryFolder folder;
  const Settings task = transformer_task(folder);
  const std::string expected = checksum(task + kSolo);
  const Settings pipeline = {"strategy.kind=pipeline"};
  for (const char* stages : {"2", "4", "6"})
    EXPECT_EQ(
        checksum(task + pipeline +
                 Settings{"cluster.fabric=virtual", "cluster.workers=" + std::string(stages)}),
        expected)
        << stages;
  EXPECT_EQ(checksum(task + pipeline +
                     Settings{"cluster.fabric=process", "cluster.workers=2",
                              "strategy.schedule=interleaved", "strategy.recompute=true"}),
            expected);
}

TEST(DeepModels, ResidualNetworkIsBitwiseSoloInStages) {
  const Settings task = {"task.data=fashion-mnist",
                         "task.data.limit=64",
                         "task.model.kind=resnet20",
                         "task.model.channels=[8, 16]",
                         "task.model.blocks=1",
                         "task.global_batch=16",
                         "task.max_steps=2",
                         "task.deterministic=true",
                         "task.lanes=4",
                         "optimizer.lr=0.05",
                         "cluster.timeout=60"};
  const std::string expected = checksum(task + kSolo);
  for (const char* stages : {"2", "4"})
    EXPECT_EQ(checksum(task + Settings{"strategy.kind=pipeline", "cluster.fabric=virtual",
                                       "cluster.workers=" + std::string(stages)}),
              expected)
        << stages;
}

// Fractions of samples add up to the same whoever evaluates which of them.
TEST(DeepModels, QualityOfSequencesDoesNotDependOnTheWorkers) {
  const TemporaryFolder folder;
  const Settings task = transformer_task(folder);
  const RunRecord alone = run(task + kSolo);
  const RunRecord five =
      run(task + kRing + Settings{"cluster.fabric=virtual", "cluster.workers=5"});
  ASSERT_EQ(alone.status, RunStatus::kDone) << alone.error;
  ASSERT_EQ(five.status, RunStatus::kDone) << five.error;
  const auto& last = alone.evaluations.back();
  EXPECT_EQ(last.quality, five.evaluations.back().quality);
  EXPECT_GT(last.quality, 0);
  EXPECT_LT(last.quality, 1);
  EXPECT_EQ(alone.nodes[0].test_quality, five.nodes[0].test_quality);
}

}  // namespace
}  // namespace tutti

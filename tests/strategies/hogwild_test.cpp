// Hogwild: learns on shared parameters, is plain SGD with one worker, counts what it missed, and is
// refused where there is no shared memory.
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "tests/support/parameters.h"

namespace tutti {
namespace {

using namespace testing_support;

Settings hogwild(int workers) {
  return {"strategy.kind=hogwild", "cluster.fabric=process",
          "cluster.workers=" + std::to_string(workers)};
}

TEST(Hogwild, OneWorkerIsSolo) {
  const Settings solo = {"strategy.kind=solo", "cluster.fabric=process", "cluster.workers=1"};
  for (const char* optimizer : {"sgd", "adam"}) {
    const Settings task = logistic_task() + Settings{"optimizer.kind=" + std::string(optimizer)};
    const std::vector<float> expected = parameters_after(task + solo);
    const std::vector<float> actual = parameters_after(task + hogwild(1));
    // An update is added as a difference: two roundings more per step, of values below 4.
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(actual[i], expected[i], 12 * 2 * std::ldexp(4.0, -24)) << optimizer;
  }
}

TEST(Hogwild, LearnsTogetherAndEndsAlike) {
  for (const int workers : {2, 4}) {
    const Settings settings =
        logistic_task() + hogwild(workers) + Settings{"task.epochs=10", "task.data.samples=4800"};
    const RunRecord record = run(settings);
    ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
    EXPECT_GT(record.nodes[0].test_quality, 0.9);
    for (const NodeReport& node : record.nodes)
      EXPECT_EQ(node.parameters_sha256, record.nodes[0].parameters_sha256);
    const Job job = load_job("", settings);
    const Data data = load_data(job.task.data, job.task.seed, job.base_dir);
    EXPECT_GE(record.evaluations.back().samples,
              static_cast<int64_t>(10 * data.splits.train.size()));
    EXPECT_EQ(record.nodes[0].freshness.count, record.nodes[0].steps);
  }
}

Settings ratings_task() {
  return {"task.data={kind=\"synthetic-ratings\", samples=6000, users=60, items=40, rank=2}",
          "task.model={kind=\"factorization\", rank=3}",
          "task.global_batch=32",
          "task.epochs=2",
          "optimizer.lr=0.05",
          "cluster.timeout=60"};
}

// On rows only what a batch touches is read and written, which for these optimizers is all.
TEST(Hogwild, OneWorkerOnRowsIsSolo) {
  const Settings solo = {"strategy.kind=solo", "cluster.fabric=process", "cluster.workers=1"};
  for (const char* optimizer : {"sgd", "adagrad"}) {
    const Settings task = ratings_task() + Settings{"optimizer.kind=" + std::string(optimizer)};
    const std::vector<float> expected = parameters_after(task + solo);
    const std::vector<float> actual = parameters_after(task + hogwild(1));
    // Two roundings more per step, of values below 4, in 304 steps that do not amplify them much.
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(actual[i], expected[i], 304 * 2 * std::ldexp(4.0, -24)) << optimizer;
  }
}

TEST(Hogwild, LearnsOnSharedRows) {
  const RunRecord record =
      run(ratings_task() + hogwild(3) +
          Settings{"task.epochs=12", "optimizer.kind=adagrad", "optimizer.lr=0.2"});
  ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
  const auto& rows = record.evaluations;
  ASSERT_GE(rows.size(), 2u);
  EXPECT_LT(rows.back().quality, 0.25);  // the variance of the ratings is about 0.43
  for (const NodeReport& node : record.nodes)
    EXPECT_EQ(node.parameters_sha256, record.nodes[0].parameters_sha256);
}

TEST(Hogwild, StopsEverywhereAtTheTarget) {
  const RunRecord record = run(logistic_task() + hogwild(2) +
                               Settings{"task.epochs=2000", "task.eval_every=0.5",
                                        "task.target=0.9", "task.stop_at_target=true"});
  ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
  EXPECT_LT(record.evaluations.back().epoch, 1000);
}

TEST(Hogwild, IsRefusedWithoutSharedMemory) {
  for (const char* elsewhere : {"cluster.fabric=virtual", "cluster.remote=1"})
    EXPECT_THROW(resolve(load_job("", logistic_task() + hogwild(2) + Settings{elsewhere})),
                 ConfigError)
        << elsewhere;
  EXPECT_THROW(
      resolve(load_job("", logistic_task() + hogwild(2) + Settings{"task.deterministic=true"})),
      ConfigError);
}

}  // namespace
}  // namespace tutti

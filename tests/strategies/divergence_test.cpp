// A step that cannot be taken is taken by nobody: where a number overflows on one worker, all of
// them end at that step, with the parameters that one worker alone would end with.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;

// Rows of small numbers, and one whose score overflows as soon as a weight is not tiny.
void write_rows(const std::string& path, int rows, int large) {
  std::ofstream file(path);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < 4; ++column)
      file << (row == large ? 3e38 : std::sin(row * 4 + column)) << ',';
    file << std::cos(row) << '\n';
  }
}

Settings regression(const std::string& path) {
  return {"task.data.kind=csv",          "task.data.path=" + path, "task.data.regression=true",
          "task.data.standardise=false", "task.data.validation=0", "task.data.test=0",
          "task.model=linear",           "task.global_batch=37",   "task.epochs=1",
          "optimizer.kind=sgd",          "optimizer.lr=0.3",       "cluster.timeout=60"};
}

Settings workers_on(const std::string& fabric, int workers) {
  Settings settings = {"cluster.fabric=" + fabric, "cluster.workers=" + std::to_string(workers)};
  settings.push_back(workers == 1 ? "strategy.kind=solo" : "strategy.kind=allreduce");
  return settings;
}

struct End {
  RunStatus status = RunStatus::kDone;
  int64_t steps = 0;
  std::string checksum;
  bool operator==(const End&) const = default;
};
void PrintTo(const End& end, std::ostream* out) {
  *out << word_of(end.status) << " after " << end.steps << " steps with " << end.checksum;
}

// The same on every worker, or the test fails.
End end_of(const Settings& settings) {
  const RunRecord record = run(settings);
  EXPECT_FALSE(record.nodes.empty());
  if (record.nodes.empty()) return {};
  const NodeReport& first = record.nodes.front();
  for (const NodeReport& node : record.nodes) {
    EXPECT_EQ(node.steps, first.steps) << "node " << node.rank;
    EXPECT_EQ(node.parameters_sha256, first.parameters_sha256) << "node " << node.rank;
  }
  return {record.status, first.steps, first.parameters_sha256};
}

TEST(Divergence, EndsAtTheSameStepForEveryNumberOfWorkers) {
  const TemporaryFolder folder;
  const std::string path = folder / "rows.csv";
  for (const int large : {3, 100, 190}) {
    write_rows(path, 200, large);
    const Settings task = regression(path) + Settings{"task.deterministic=true"};
    const End alone = end_of(task + workers_on("process", 1));
    EXPECT_EQ(alone.status, RunStatus::kDiverged);
    for (const int workers : {2, 3, 8})
      for (const char* fabric : {"process", "virtual"})
        EXPECT_EQ(end_of(task + workers_on(fabric, workers)), alone)
            << workers << " workers on " << fabric << ", row " << large;
  }
}

// Without exact sums the bits differ, but all workers still end at one step with one result.
TEST(Divergence, IsSeenByAllWorkersAtOnce) {
  const TemporaryFolder folder;
  const std::string path = folder / "rows.csv";
  write_rows(path, 200, 100);
  const End alone = end_of(regression(path) + workers_on("process", 1));
  for (const char* topology : {"ring", "tree", "direct"}) {
    const End end = end_of(regression(path) + workers_on("process", 3) +
                           Settings{std::string("strategy.topology=") + topology});
    EXPECT_EQ(end.status, RunStatus::kDiverged) << topology;
    EXPECT_EQ(end.steps, alone.steps) << topology;
  }
}

// The last update overflows, and there are no samples that anything would be measured on.
TEST(Divergence, IsSeenAfterTheLastStep) {
  const TemporaryFolder folder;
  const std::string path = folder / "rows.csv";
  write_rows(path, 40, -1);
  for (const int workers : {1, 2}) {
    const RunRecord record = run(regression(path) + workers_on("process", workers) +
                                 Settings{"optimizer.lr=1e38", "optimizer.kind=momentum",
                                          "task.max_steps=1", "optimizer.weight_decay=1e38"});
    EXPECT_EQ(record.status, RunStatus::kDiverged) << workers;
  }
}

TEST(Quality, IsUnknownWithoutSamples) {
  const TemporaryFolder folder;
  const std::string path = folder / "rows.csv";
  write_rows(path, 40, -1);
  const RunRecord record = run(regression(path) + workers_on("process", 1));
  ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
  ASSERT_FALSE(record.evaluations.empty());
  for (const EvaluationRow& row : record.evaluations) {
    EXPECT_TRUE(std::isnan(row.quality));
    EXPECT_TRUE(std::isnan(row.loss));
  }
}

}  // namespace
}  // namespace tutti

// How long a pipeline idles, in virtual time, against the textbook's formula.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;

// Equal stages: square layers, of which only the relus make a difference of less than 1 %. Links so
// fast, and updates so cheap, that arithmetic is what takes time.
Settings balanced(size_t stages, size_t micro_batches, const std::string& schedule) {
  std::string hidden;
  for (size_t i = 1; i < stages; ++i) hidden += (i > 1 ? ", " : "") + std::string("256");
  return {"task.data.kind=synthetic-classes",
          "task.data.samples=512",
          "task.data.features=256",
          "task.data.classes=256",
          "task.model.kind=mlp",
          "task.model.hidden=[" + hidden + "]",
          "task.global_batch=" + std::to_string(16 * micro_batches),
          "task.max_steps=3",
          "optimizer.lr=0.01",
          "strategy.kind=pipeline",
          "strategy.schedule=\"" + schedule + "\"",
          "strategy.micro_batches=" + std::to_string(micro_batches),
          "cluster.fabric=virtual",
          "cluster.workers=" + std::to_string(stages),
          "cluster.speed=\"1 MFLOP/s\"",
          "cluster.step_overhead=0",  // textbooks leave overheads out
          "cluster.layer_overhead=0",
          "cluster.memory_bandwidth=\"1000 GB/s\"",
          "cluster.bandwidth=\"1000 GB/s\"",
          "cluster.latency=\"1 ns\"",
          "cluster.cost_only=true"};
}

const NodeReport& first(const RunRecord& record) {
  EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
  return record.nodes.front();
}

double bubble(const RunRecord& record) { return first(record).extra.figures.at("pipeline_bubble"); }

// The bound: within 2 % of the formula.
TEST(Bubble, IsThatOfTheTextbookWithBalancedStages) {
  for (const char* schedule : {"gpipe", "1f1b"})
    for (const auto& [p, m] : {std::pair<size_t, size_t>{2, 4}, {4, 4}, {4, 8}, {8, 8}}) {
      const double expected = static_cast<double>(p - 1) / static_cast<double>(m + p - 1);
      EXPECT_NEAR(bubble(run(balanced(p, m, schedule))), expected, 0.02 * expected)
          << schedule << ", " << m << " micro-batches on " << p << " nodes";
    }
}

TEST(Bubble, SequentialKeepsOneNodeBusyAtATime) {
  EXPECT_NEAR(bubble(run(balanced(4, 4, "sequential"))), 0.75, 0.02);
}

// Two stages on each node halve the bubble: (p - 1) / (v m + p - 1).
TEST(Bubble, InterleavedIsShorter) {
  Settings settings = balanced(8, 8, "interleaved");
  settings.push_back("cluster.workers=4");
  EXPECT_NEAR(bubble(run(settings)), 3.0 / (2 * 8 + 3), 0.02 * 3.0 / 19);
}

// The record shows it: a timeline for each node, and the idle time as waiting.
TEST(Bubble, ShowsInTimelineAndTimeSplit) {
  const RunRecord record = run(balanced(4, 4, "1f1b"));
  ASSERT_EQ(record.nodes.size(), 4U);
  for (const NodeReport& node : record.nodes) {
    EXPECT_FALSE(node.timeline.empty()) << node.rank;
    EXPECT_GT(node.wait_s, 0) << node.rank;
    EXPECT_NEAR(node.compute_s + node.communicate_s + node.aggregate_s + node.wait_s, node.total_s,
                0.02 * node.total_s);
  }
  const Extra::Table& table = first(record).extra.tables.at("pipeline");
  EXPECT_EQ(table.rows.size(), 4U);
}

// A slow node in the middle is what all wait for, and the planner gives it less to do.
TEST(Bubble, SlowNodesGetFewerLayers) {
  Settings settings = balanced(8, 8, "1f1b");
  for (const char* setting : {"cluster.workers=3", "cluster.speed_factors=[1.0, 0.25, 1.0]"})
    settings.push_back(setting);
  const RunRecord record = run(settings);
  const Extra::Table& table = first(record).extra.tables.at("pipeline");
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_LT(table.rows[1][3], table.rows[0][3] / 2);  // FLOPs
  EXPECT_GT(table.rows[1][3], 0);
}

// What passes the stages is predicted before the run.
TEST(Traffic, IsWhatCheckSays) {
  for (const char* replicas : {"1", "2"}) {
    Settings settings = balanced(4, 4, "1f1b");
    for (const std::string& setting :
         {std::string("strategy.replicas=") + replicas, std::string("task.data.samples=4096"),
          std::string("cluster.workers=") + (replicas[0] == '2' ? "8" : "4")})
      settings.push_back(setting);
    const auto sent = [&](const std::string& steps) {
      Settings all = settings;
      all.push_back("task.max_steps=" + steps);
      uint64_t most = 0;
      const RunRecord record = run(all);
      EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
      for (const NodeReport& node : record.nodes)
        if (node.rank % 4 == 1) most = std::max(most, node.bytes_sent);
      return static_cast<double>(most);
    };
    Job job = load_job("", settings);
    const NodePlan cost = resolve(job).plan.busiest();
    EXPECT_NEAR(sent("4") - sent("2"), 2 * cost.bytes_sent, 0.01 * cost.bytes_sent) << replicas;
  }
}

}  // namespace
}  // namespace tutti

// A pipeline as a run: settings, plans, results in one place.
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "tests/support/parameters.h"

namespace tutti {
namespace {

using namespace testing_support;

Settings mlp_task() {
  return small_mlp("[12, 10, 8]") + Settings{"optimizer.kind=adam", "optimizer.lr=0.01"};
}

Settings pipeline(const std::string& schedule, int workers, const std::string& fabric) {
  return {"strategy.kind=pipeline", "strategy.schedule=\"" + schedule + "\"",
          "cluster.workers=" + std::to_string(workers), "cluster.fabric=" + fabric};
}

// In every schedule gradients are added micro-batch by micro-batch: the same sums, bit by bit, also
// without task.deterministic.
TEST(Pipeline, EverySchedulesParametersAreTheSame) {
  const Settings task = mlp_task() + Settings{"strategy.micro_batches=4"};
  const std::string expected = checksum(task + pipeline("sequential", 1, "process"));
  for (const char* fabric : {"process", "virtual"}) {
    for (const char* schedule : {"sequential", "gpipe", "1f1b"})
      EXPECT_EQ(checksum(task + pipeline(schedule, 4, fabric)), expected) << schedule << fabric;
    EXPECT_EQ(checksum(task + pipeline("interleaved", 2, fabric)), expected) << fabric;
  }
  EXPECT_EQ(checksum(task + pipeline("gpipe", 3, "process") + Settings{"strategy.stages=[3, 6]"}),
            expected);
}

TEST(Pipeline, RecomputingChangesNothing) {
  const Settings task = mlp_task() + Settings{"strategy.micro_batches=5"};
  const std::string expected = checksum(task + pipeline("1f1b", 3, "virtual"));
  const Settings recompute = {"strategy.recompute=true"};
  EXPECT_EQ(checksum(task + pipeline("1f1b", 3, "virtual") + recompute), expected);
  EXPECT_EQ(checksum(task + pipeline("gpipe", 4, "process") + recompute), expected);
}

TEST(Pipeline, LargeActivationsTravelToo) {
  // 4,000 floats for each of 19 samples: more than what is sent eagerly.
  const Settings task = mlp_task() + Settings{"task.model.hidden=[4000, 16]", "task.max_steps=4",
                                              "strategy.micro_batches=2"};
  const std::string expected = checksum(task + pipeline("1f1b", 1, "virtual"));
  for (const char* schedule : {"gpipe", "1f1b"})
    for (const char* fabric : {"process", "virtual"})
      EXPECT_EQ(checksum(task + pipeline(schedule, 3, fabric)), expected) << schedule << fabric;
}

// The quality, the files and the records are those of one worker alone.
TEST(Pipeline, LeavesWhatOtherRunsLeave) {
  const Settings task = mlp_task() + Settings{"task.deterministic=true"};
  const Settings alone = {"strategy.kind=solo", "cluster.workers=1"};
  EXPECT_EQ(parameters_after(task + pipeline("1f1b", 4, "process")),
            parameters_after(task + alone));
  const RunRecord one = run(task + alone), four = run(task + pipeline("1f1b", 4, "virtual"));
  ASSERT_EQ(four.status, RunStatus::kDone) << four.error;
  ASSERT_EQ(one.evaluations.size(), four.evaluations.size());
  EXPECT_EQ(one.evaluations.back().quality, four.evaluations.back().quality);
  EXPECT_EQ(one.evaluations.back().loss, four.evaluations.back().loss);
  EXPECT_EQ(one.nodes[0].test_quality, four.nodes[0].test_quality);
  EXPECT_EQ(one.nodes[0].steps, four.nodes[3].steps);
  for (size_t rank = 1; rank < 4; ++rank) EXPECT_TRUE(four.nodes[rank].parameters_sha256.empty());
}

// Bytes and messages of the process fabric are those of the virtual one; cost-only takes the
// virtual time of the full run.
TEST(Pipeline, CostsAreTheSameWithoutTheArithmetic) {
  const Settings task = mlp_task() + pipeline("1f1b", 4, "virtual");
  const RunRecord full = run(task), cost = run(task + Settings{"cluster.cost_only=true"});
  const RunRecord real = run(mlp_task() + pipeline("1f1b", 4, "process"));
  ASSERT_EQ(cost.status, RunStatus::kDone) << cost.error;
  for (size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(full.nodes[rank].total_s, cost.nodes[rank].total_s);
    EXPECT_EQ(full.nodes[rank].bytes_sent, cost.nodes[rank].bytes_sent);
    EXPECT_EQ(full.nodes[rank].bytes_sent, real.nodes[rank].bytes_sent);
    EXPECT_EQ(full.nodes[rank].messages, real.nodes[rank].messages);
  }
}

TEST(Pipeline, DivergenceIsNamed) {
  const RunRecord record = run(mlp_task() + pipeline("1f1b", 4, "virtual") +
                               Settings{"optimizer.kind=sgd", "optimizer.lr=1e30"});
  EXPECT_EQ(record.status, RunStatus::kDiverged) << record.error;
}

TEST(PipelineSettings, ThatContradictEachOtherAreNamed) {
  const auto refused = [](const Settings& more) {
    return refusal(mlp_task() + pipeline("1f1b", 4, "process") + more);
  };
  EXPECT_EQ(refused({}), "");
  EXPECT_NE(refused({"strategy.stages=3"}).find("set cluster.workers = 3"), std::string::npos);
  EXPECT_NE(refused({"cluster.workers=5"}).find("at most 4"), std::string::npos);
  EXPECT_NE(refused({"strategy.stages=[3, 4, 9]"}).find("4 is no place"), std::string::npos);
  EXPECT_NE(refused({"strategy.stages=[6, 3, 9]"}).find("order"), std::string::npos);
  EXPECT_NE(refused({"strategy.replicas=3"}).find("does not divide"), std::string::npos);
  EXPECT_NE(refused({"strategy.micro_batches=40"}).find("task.global_batch"), std::string::npos);
  EXPECT_NE(refused({"task.partition=disjoint"}).find("task.partition"), std::string::npos);
  EXPECT_NE(refused({"optimizer.clip_norm=1"}).find("optimizer.clip_norm"), std::string::npos);
  EXPECT_NE(refused({"task.deterministic=true", "strategy.micro_batches=4"}).find("task.lanes"),
            std::string::npos);
  EXPECT_NE(
      refused({"strategy.schedule=interleaved", "cluster.workers=2", "strategy.micro_batches=3"})
          .find("multiple"),
      std::string::npos);
  EXPECT_NE(refused({"strategy.schedule=asynchronous", "task.deterministic=true"})
                .find("task.deterministic = true"),
            std::string::npos);
  EXPECT_NE(refused({"strategy.schedule=asynchronous", "strategy.micro_batches=4"})
                .find("strategy.micro_batches"),
            std::string::npos);
  EXPECT_NE(refused({"strategy.vertical_sync=true"}).find("strategy.vertical_sync"),
            std::string::npos);
  EXPECT_NE(refusal(logistic_task() + pipeline("1f1b", 4, "process")).find("at most 1"),
            std::string::npos);
  EXPECT_THROW(load_job("", {"strategy.kind=pipeline", "strategy.stages=\"some\""}), ConfigError);
  EXPECT_THROW(load_job("", {"strategy.kind=pipeline", "strategy.stages=1.5"}), ConfigError);
  EXPECT_THROW(load_job("", {"strategy.kind=pipeline", "strategy.stages=[]"}), ConfigError);
}

TEST(PipelineSettings, AreKeptInTheResolvedJob) {
  for (const char* stages : {"4", "[2, 5, 8]", "\"auto\""}) {
    Job job = load_job("", {"strategy.kind=pipeline", "strategy.stages=" + std::string(stages)});
    EXPECT_NE(resolved_toml(job).find("stages = " + std::string(stages) + "\n"), std::string::npos);
  }
}

std::vector<std::string> explained(const Settings& settings) {
  Job job = load_job("", settings);
  return resolve(job).plan.reasons;
}

TEST(PipelinePlan, SaysWhichLayersGoWhere) {
  const auto lines = explained(mlp_task() + pipeline("1f1b", 4, "process"));
  ASSERT_GE(lines.size(), 6U);
  EXPECT_NE(lines[0].find("4 stages on 4 nodes"), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find("stage 0 on rank 0: layers 0 to "), std::string::npos) << lines[1];
  EXPECT_NE(lines[4].find("fc4"), std::string::npos) << lines[4];
}

// With slow links and small layers copies of the model are best; where it does not fit, stages are.
TEST(PipelinePlan, AutoChoosesWhatIsFastestAndFits) {
  const Settings task =
      mlp_task() + pipeline("1f1b", 4, "virtual") +
      Settings{"strategy.stages=auto", "task.global_batch=64", "cluster.bandwidth=\"10 GB/s\"",
               "cluster.latency=\"1 ns\"", "cluster.speed=\"1 MFLOP/s\""};
  const auto quick = explained(task);
  EXPECT_NE(quick[0].find("1 stage on 1 node x 4 replicas"), std::string::npos) << quick[0];
  // Large weights that all would have to sum, and a narrow link: they stay where they are.
  const Settings wide =
      task + Settings{"task.model.hidden=[512, 512, 512]", "cluster.bandwidth=\"1 MB/s\"",
                      "cluster.speed=\"1 GFLOP/s\""};
  const auto cut = explained(wide);
  EXPECT_EQ(cut[0].find("replicas"), std::string::npos) << cut[0];
  const RunRecord record = run(wide + Settings{"task.max_steps=2"});
  EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
  // Memory decides where it must.
  const auto small =
      explained(task + Settings{"task.model.hidden=[512, 512, 512]", "cluster.memory=\"8 MB\""});
  EXPECT_EQ(small[0].find("4 replicas"), std::string::npos) << small[0];
  EXPECT_NE(small.back().find("more than cluster.memory"), std::string::npos) << small.back();
}

}  // namespace
}  // namespace tutti

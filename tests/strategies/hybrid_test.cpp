// Copies, stages and shards together, and how the planner chooses among them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "core/error.h"
#include "core/random.h"
#include "tests/support/faults.h"
#include "tests/support/parameters.h"

namespace tutti {
namespace {

using namespace testing_support;

Settings deep_task() {
  return small_mlp("[12, 10, 8]") + Settings{"optimizer.kind=adam", "optimizer.lr=0.01"};
}

Settings hybrid(const std::string& data, const std::string& stages, const std::string& shards,
                int workers, const std::string& fabric) {
  return {"strategy.kind=hybrid",
          "strategy.data=" + data,
          "strategy.stages=" + stages,
          "strategy.shards=" + shards,
          "cluster.workers=" + std::to_string(workers),
          "cluster.fabric=" + fabric};
}

// Stages change nothing, and neither does the fabric: with as many shards and micro-batches the
// bits are the same.
TEST(Hybrid, OfTheSameShardsIsTheSameBitByBit) {
  const Settings task = deep_task() + Settings{"strategy.micro_batches=4"};
  const std::string expected = checksum(task + hybrid("1", "1", "2", 2, "virtual"));
  EXPECT_EQ(checksum(task + hybrid("1", "2", "2", 4, "virtual")), expected);
  EXPECT_EQ(checksum(task + hybrid("1", "2", "2", 4, "process")), expected);
  for (const char* schedule : {"gpipe", "sequential"})
    EXPECT_EQ(checksum(task + hybrid("1", "2", "2", 4, "virtual") +
                       Settings{"strategy.schedule=" + std::string(schedule)}),
              expected)
        << schedule;
  EXPECT_EQ(
      checksum(task + hybrid("1", "2", "2", 4, "virtual") + Settings{"strategy.recompute=true"}),
      expected);
}

TEST(Hybrid, WithoutShardsIsAPipelineBitByBit) {
  const Settings task = deep_task() + Settings{"task.deterministic=true"};
  const std::string expected = checksum(task + Settings{"strategy.kind=solo", "cluster.workers=1"});
  EXPECT_EQ(checksum(task + hybrid("2", "2", "1", 4, "process")), expected);
  EXPECT_EQ(checksum(task + hybrid("auto", "auto", "auto", 4, "virtual")), expected)
      << "the planner leaves layers whole where bits must be the same";
}

// All three at once learn what one worker alone learns.
TEST(Hybrid, LearnsAsSoloDoes) {
  const RunRecord alone = run(deep_task() + Settings{"strategy.kind=solo", "cluster.workers=1"});
  for (const char* fabric : {"process", "virtual"}) {
    const RunRecord eight = run(deep_task() + hybrid("2", "2", "2", 8, fabric));
    ASSERT_EQ(eight.status, RunStatus::kDone) << eight.error;
    ASSERT_EQ(eight.evaluations.size(), alone.evaluations.size());
    EXPECT_NEAR(eight.evaluations.back().loss, alone.evaluations.back().loss, 1e-4);
    EXPECT_NEAR(eight.nodes[0].test_quality, alone.nodes[0].test_quality, 1.5 / 48);
    EXPECT_EQ(eight.nodes[7].steps, alone.nodes[0].steps);
  }
}

TEST(Hybrid, CostsAreTheSameWithoutTheArithmetic) {
  const Settings task = deep_task() + hybrid("2", "2", "2", 8, "virtual");
  const RunRecord full = run(task), cost = run(task + Settings{"cluster.cost_only=true"});
  const RunRecord real = run(deep_task() + hybrid("2", "2", "2", 8, "process"));
  ASSERT_EQ(cost.status, RunStatus::kDone) << cost.error;
  for (size_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(full.nodes[rank].total_s, cost.nodes[rank].total_s);
    EXPECT_EQ(full.nodes[rank].bytes_sent, cost.nodes[rank].bytes_sent);
    EXPECT_EQ(full.nodes[rank].bytes_sent, real.nodes[rank].bytes_sent);
    EXPECT_EQ(full.nodes[rank].messages, real.nodes[rank].messages);
  }
}

// Asynchronous stages of shards: updates while batches are under way, on each shard alike.
TEST(Hybrid, AsynchronousStagesMayHaveShards) {
  const Settings task = deep_task() + hybrid("1", "2", "2", 4, "virtual") +
                        Settings{"strategy.schedule=asynchronous"};
  EXPECT_EQ(checksum(task), checksum(task + Settings{"cluster.fabric=process"}));
}

// Whoever is lost, and whenever: every node says how it ended.
TEST(Hybrid, RandomFaultsEndInAStatedOutcome) {
  expect_stated_outcomes(40, 0.2, 8, [](Random& random) {
    const char* shapes[][3] = {{"1", "1", "4"}, {"1", "2", "2"}, {"2", "1", "2"}, {"2", "2", "2"}};
    const auto& shape = shapes[random.below(4)];
    const int workers = std::stoi(shape[0]) * std::stoi(shape[1]) * std::stoi(shape[2]);
    return load_job("", deep_task() + hybrid(shape[0], shape[1], shape[2], workers, "virtual") +
                            Settings{"cluster.speed=\"10 MFLOP/s\"", "cluster.timeout=20",
                                     "cluster.step_overhead=0", "cluster.layer_overhead=0",
                                     "cluster.detect=0.05"});
  });
}

std::vector<std::string> explained(const Settings& settings) {
  Job job = load_job("", settings);
  return resolve(job).plan.reasons;
}

size_t considered(const std::vector<std::string>& lines) {
  return static_cast<size_t>(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.starts_with("considered ");
  }));
}

TEST(HybridPlan, ChoosesByNetworkAndMemory) {
  const Settings task = deep_task() + hybrid("auto", "auto", "auto", 4, "virtual") +
                        Settings{"task.global_batch=64", "task.model.hidden=[512, 512, 512]",
                                 "cluster.latency=\"1 ns\"", "cluster.speed=\"100 MFLOP/s\""};
  // Copies where neither sums nor adding up cost anything; where only neighbours on a host can
  // talk, shards on each.
  const auto quick = explained(
      task + Settings{"cluster.bandwidth=\"100 GB/s\"", "cluster.memory_bandwidth=\"1000 GB/s\""});
  EXPECT_NE(quick[0].find("x 4 replicas"), std::string::npos) << quick[0];
  EXPECT_GE(considered(quick), 6U);
  const auto narrow = explained(task + Settings{"cluster.bandwidth=\"1 MB/s\"",
                                                "cluster.nodes_per_host=4", "strategy.stages=1"});
  EXPECT_NE(narrow[0].find("x 4 shards"), std::string::npos) << narrow[0];
  // A model that fits no node is split.
  const auto small = explained(task + Settings{"cluster.bandwidth=\"100 GB/s\"",
                                               "cluster.memory=\"7 MB\"", "strategy.stages=1"});
  EXPECT_NE(small[0].find("shards"), std::string::npos) << small[0];
  bool refused = false;
  for (const std::string& line : small)
    refused = refused || line.find("more than cluster.memory") != std::string::npos;
  EXPECT_TRUE(refused);
}

// What the planner thinks of a way to share the nodes, in seconds.
double estimated_s(const Settings& settings) {
  for (const std::string& line : explained(settings))
    if (double ms = 0; std::sscanf(line.c_str(), "about %lf ms", &ms) == 1) return ms / 1e3;
  return 0;
}

double simulated_s(const Settings& settings) {
  const auto total_s = [&](const char* steps) {
    const RunRecord record = run(settings + Settings{"cluster.cost_only=true", "task.eval_every=9",
                                                     "task.max_steps=" + std::string(steps)});
    EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
    return record.nodes[0].total_s;
  };
  return (total_s("5") - total_s("2")) / 3;
}

// What it decides by is what the simulation says, on hosts with one node and with several that
// share a link: each figure within a quarter, and no other way much faster than its own.
TEST(HybridPlan, EstimatesAreThoseOfTheSimulation) {
  const Settings task = {"task.data.kind=synthetic-classes",
                         "task.data.samples=2048",
                         "task.data.features=512",
                         "task.data.classes=16",
                         "task.model.kind=mlp",
                         "task.model.hidden=[1024, 1024, 1024, 1024, 1024, 1024, 1024]",
                         "task.global_batch=256",
                         "cluster.speed=\"5 GFLOP/s\"",
                         "cluster.timeout=600"};
  for (const char* nodes_per_host : {"1", "4"}) {
    const Settings cluster = {"cluster.nodes_per_host=" + std::string(nodes_per_host)};
    double fastest_s = 1e9;
    const std::pair<const char*, const char*> ways[] = {{"1", "1"}, {"1", "2"}, {"1", "8"},
                                                        {"2", "1"}, {"2", "2"}, {"2", "4"},
                                                        {"4", "1"}, {"4", "2"}, {"8", "1"}};
    for (const auto& [data, shards] : ways) {
      const Settings way = task + hybrid(data, "auto", shards, 8, "virtual") + cluster;
      const double real_s = simulated_s(way);
      fastest_s = std::min(fastest_s, real_s);
      EXPECT_NEAR(estimated_s(way) / real_s, 1, 0.25)
          << data << " copies, " << shards << " shards, " << nodes_per_host << " on a host";
    }
    // Eight stages whose nodes compute so fast that adding up gradients takes most of the time.
    const Settings heavy = task + hybrid("1", "auto", "1", 8, "virtual") + cluster +
                           Settings{"cluster.speed=\"100 GFLOP/s\""};
    EXPECT_NEAR(estimated_s(heavy) / simulated_s(heavy), 1, 0.25) << nodes_per_host;
    // Eight copies of a small model, whose sums are all latency.
    const Settings light = task + hybrid("8", "1", "1", 8, "virtual") +
                           Settings{"task.model.hidden=[16]", "cluster.latency=\"2 ms\""};
    EXPECT_NEAR(estimated_s(light) / simulated_s(light), 1, 0.25) << nodes_per_host;
    const Settings chosen = task + hybrid("auto", "auto", "auto", 8, "virtual") + cluster;
    EXPECT_LT(simulated_s(chosen), 1.2 * fastest_s) << nodes_per_host;
  }
}

TEST(HybridPlan, SaysWhatIsSplitAndWhatIsSummed) {
  const auto lines = explained(deep_task() + hybrid("1", "2", "2", 4, "virtual"));
  EXPECT_NE(lines[0].find("2 stages on 2 nodes x 2 shards"), std::string::npos) << lines[0];
  EXPECT_NE(lines[2].find("stage 1 on ranks 2 to 3"), std::string::npos) << lines[2];
  EXPECT_NE(lines[3].find("split into 2: fc1 to fc2, fc3 to fc4"), std::string::npos) << lines[3];
  EXPECT_NE(lines[4].find("2 forward and 1 backward"), std::string::npos) << lines[4];
}

// No plan that could have been asked for is shown as faster than the one that is chosen.
TEST(HybridPlan, AutoIsTheFastestOfAllByWhatCheckShows) {
  const auto shown_ms = [](const Job& job) {
    for (const std::string& line : resolve(job).plan.reasons)
      if (line.starts_with("about ")) return std::stod(line.substr(6));
    ADD_FAILURE() << "no time is shown";
    return 0.0;
  };
  for (const int workers : {2, 4, 6})
    for (const char* bandwidth : {"100 Mbit/s", "10 Gbit/s"}) {
      const Settings task = {"task.data.kind=synthetic-classes",
                             "task.data.features=64",
                             "task.model.kind=mlp",
                             "task.model.hidden=[400, 60, 300]",
                             "task.global_batch=48",
                             "strategy.kind=hybrid",
                             "cluster.fabric=virtual",
                             "cluster.workers=" + std::to_string(workers),
                             std::string("cluster.bandwidth=\"") + bandwidth + "\""};
      const Job job = load_job("", task);
      const double chosen_ms = shown_ms(job);
      size_t others = 0;
      for (int data = 1; data <= workers; ++data)
        for (int shards = 1; data * shards <= workers; ++shards) {
          const Settings sizes = {"strategy.data=" + std::to_string(data),
                                  "strategy.shards=" + std::to_string(shards)};
          if (!refusal(task + sizes).empty()) continue;
          EXPECT_LE(chosen_ms, shown_ms(load_job("", task + sizes)))
              << workers << bandwidth << sizes[0] << sizes[1];
          ++others;
        }
      EXPECT_GT(others, 1u);
    }
}

TEST(HybridSettings, ThatContradictEachOtherAreNamed) {
  const auto refused = [](const Settings& sizes, const Settings& more = {}) {
    return refusal(deep_task() + sizes + more);
  };
  EXPECT_EQ(refused(hybrid("2", "2", "2", 8, "process")), "");
  EXPECT_EQ(refused(hybrid("auto", "2", "2", 8, "process")), "");
  EXPECT_TRUE(refused(hybrid("3", "1", "2", 8, "process")).starts_with("strategy.shards"));
  EXPECT_NE(refused(hybrid("2", "3", "2", 8, "process")).find("set cluster.workers = 12"),
            std::string::npos);
  EXPECT_NE(refused(hybrid("1", "4", "2", 8, "process")).find("outside of layers that are split"),
            std::string::npos);
  EXPECT_TRUE(refused(hybrid("[1, 2]", "1", "2", 2, "process")).starts_with("strategy.data"));
  EXPECT_TRUE(refused(hybrid("2", "2", "2", 8, "process"), {"optimizer.clip_norm=1"})
                  .starts_with("optimizer.clip_norm"));
  EXPECT_TRUE(refused(hybrid("2", "2", "2", 8, "process"), {"optimizer.kind=lamb"})
                  .starts_with("optimizer.kind"));
  EXPECT_EQ(refused(hybrid("4", "2", "1", 8, "process"), {"optimizer.kind=lamb"}), "");
  EXPECT_TRUE(refused(hybrid("auto", "2", "2", 8, "process"), {"strategy.schedule=asynchronous"})
                  .starts_with("strategy.data"));
}

}  // namespace
}  // namespace tutti

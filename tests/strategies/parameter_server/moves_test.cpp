// Servers that are lost and come back: shards are spread over those that are there, and nothing
// that was acknowledged is lost by that or applied twice.
#include <gtest/gtest.h>

#include <map>

#include "core/random.h"
#include "tests/strategies/parameter_server/kills.h"
#include "tests/support/thorough.h"

namespace tutti {
namespace {

using namespace testing_support;

constexpr int kWorkers = 3;
constexpr int kEpochs = 2;
constexpr int kSteps = kEpochs * 11;

Job moving_job(int servers_count, int replicas, const std::string& consistency,
               const Settings& more = {}) {
  return load_job("", logistic_task() + servers(servers_count, consistency) +
                          cluster("virtual", kWorkers) +
                          Settings{"strategy.replicas=" + std::to_string(replicas),
                                   "task.epochs=" + std::to_string(kEpochs), "cluster.timeout=20"} +
                          more);
}

const Settings kDeterministic = {"task.deterministic=true"};

// Shards that each server serves in the end; nothing for those that are lost.
std::vector<int64_t> served(const RunRecord& record) {
  std::vector<int64_t> shards;
  for (const NodeReport& node : record.nodes)
    if (node.role == "server" && node.counters.count("shards_served"))
      shards.push_back(node.counters.at("shards_served"));
  return shards;
}

void expect_balanced(const RunRecord& record, int64_t shards) {
  const std::vector<int64_t> loads = served(record);
  ASSERT_FALSE(loads.empty());
  int64_t total = 0;
  for (const int64_t load : loads) total += load;
  EXPECT_EQ(total, shards);
  EXPECT_LE(*std::max_element(loads.begin(), loads.end()),
            *std::min_element(loads.begin(), loads.end()) + 1);
}

TEST(Moves, ALostServersShardsAreSharedByTheOthers) {
  Job undisturbed = moving_job(3, 1, "bsp", kDeterministic);
  const RunRecord expected = run_job(undisturbed);
  ASSERT_EQ(expected.status, RunStatus::kDone) << expected.error;
  EXPECT_EQ(served(expected), (std::vector<int64_t>{2, 2, 2}));
  for (int victim = 0; victim < 3; ++victim) {
    Job job = moving_job(3, 1, "bsp", kDeterministic);
    job.cluster.faults.push_back({.at_s = 0.01, .nodes = {kWorkers + victim}});
    const RunRecord record = run_job(job);
    ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
    EXPECT_EQ(served(record), (std::vector<int64_t>{3, 3}));
    EXPECT_GT(counter(record, "shards_moved"), 0);
    EXPECT_EQ(record.nodes.front().parameters_sha256, expected.nodes.front().parameters_sha256);
    EXPECT_EQ(counter(record, "pushes_applied"), kSteps * kWorkers * 6);
  }
}

// The chains are whole again after a while, so as many may be lost once more, and once more.
TEST(Moves, CopiesAreMadeAgain) {
  Job undisturbed = moving_job(4, 1, "bsp", kDeterministic);
  const RunRecord expected = run_job(undisturbed);
  const double longest_s = duration_s(undisturbed);
  Job job = moving_job(4, 1, "bsp", kDeterministic);
  for (int i = 0; i < 3; ++i)
    job.cluster.faults.push_back({.at_s = longest_s * (0.2 + 0.2 * i), .nodes = {kWorkers + i}});
  const RunRecord record = run_job(job);
  ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
  EXPECT_EQ(record.nodes.front().parameters_sha256, expected.nodes.front().parameters_sha256);
  EXPECT_EQ(served(record), std::vector<int64_t>{8});
}

TEST(Moves, AServerThatComesBackTakesItsShareAgain) {
  Job undisturbed = moving_job(3, 1, "bsp", kDeterministic);
  const RunRecord expected = run_job(undisturbed);
  const double longest_s = duration_s(undisturbed);
  for (int victim = 0; victim < 3; ++victim) {
    Job job = moving_job(3, 1, "bsp", kDeterministic);
    job.cluster.faults.push_back(
        {.at_s = 0.2 * longest_s, .nodes = {kWorkers + victim}, .restart_s = 0.2 * longest_s});
    const RunRecord record = run_job(job);
    ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
    EXPECT_EQ(served(record), (std::vector<int64_t>{2, 2, 2})) << victim;
    EXPECT_EQ(record.nodes.front().parameters_sha256, expected.nodes.front().parameters_sha256);
    EXPECT_EQ(counter(record, "pushes_applied"), kSteps * kWorkers * 6);
  }
}

// A server that is not there at the start gets its share when it comes.
TEST(Moves, AServerMayComeLate) {
  Job undisturbed = moving_job(3, 1, "bsp", kDeterministic);
  const RunRecord expected = run_job(undisturbed);
  const double longest_s = duration_s(undisturbed);
  for (int late = 0; late < 3; ++late) {
    Job job = moving_job(3, 1, "bsp", kDeterministic);
    job.cluster.faults.push_back(
        {.at_s = 0, .nodes = {kWorkers + late}, .restart_s = 0.3 * longest_s});
    const RunRecord record = run_job(job);
    ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
    EXPECT_EQ(served(record), (std::vector<int64_t>{2, 2, 2})) << late;
    EXPECT_EQ(record.nodes.front().parameters_sha256, expected.nodes.front().parameters_sha256);
    EXPECT_EQ(counter(record, "pushes_applied"), kSteps * kWorkers * 6);
  }
}

struct Case {
  int servers, replicas;
};
class EverySchedule : public testing::TestWithParam<Case> {};

TEST_P(EverySchedule, LosesNothingUnderBsp) {
  const Case which = GetParam();
  Job undisturbed = moving_job(which.servers, which.replicas, "bsp", kDeterministic);
  const RunRecord expected = run_job(undisturbed);
  ASSERT_EQ(expected.status, RunStatus::kDone) << expected.error;
  const double longest_s = duration_s(undisturbed);
  int64_t moved = 0;
  int balanced = 0;
  for (uint64_t seed = 1; seed <= seeds(25, 75); ++seed) {
    Random random(seed, Stream::kFault);
    Job job = moving_job(which.servers, which.replicas, "bsp", kDeterministic);
    const double back_s = add_faults(job, which.servers, longest_s, random);
    const RunRecord record = run_job(job);
    ASSERT_EQ(record.status, RunStatus::kDone)
        << "seed " << seed << ": " << record.error << describe(job);
    if (back_s < 0.8 * longest_s) {
      ++balanced;
      expect_balanced(record, which.servers * 2);
      if (HasFailure()) FAIL() << "seed " << seed;
    }
    ASSERT_EQ(record.nodes.front().parameters_sha256, expected.nodes.front().parameters_sha256)
        << "seed " << seed;
    EXPECT_EQ(counter(record, "pushes_applied"), kSteps * kWorkers * which.servers * 2) << seed;
    EXPECT_EQ(counter(record, "pushes_duplicated"), 0) << seed;
    EXPECT_EQ(counter(record, "workers_expelled"), 0) << seed;
    moved += counter(record, "shards_moved");
  }
  EXPECT_GT(moved, 50);
  EXPECT_GT(balanced, 5);
}

TEST_P(EverySchedule, AppliesEveryPushOnceInEveryModel) {
  const Case which = GetParam();
  const std::vector<Settings> models = {
      {"strategy.consistency=asp"},    {"strategy.consistency=ssp"},
      {"strategy.consistency=backup"}, {"strategy.consistency=adaptive"},
      {"strategy.prefetch=true"},      {"strategy.pull_every=3"},
  };
  for (const Settings& model : models) {
    const double longest_s = duration_s(moving_job(which.servers, which.replicas, "ssp", model));
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      Random random(seed, Stream::kFault);
      Job job = moving_job(which.servers, which.replicas, "ssp", model);
      add_faults(job, which.servers, longest_s, random);
      const RunRecord record = run_job(job);
      ASSERT_EQ(record.status, RunStatus::kDone)
          << model[0] << ", seed " << seed << ": " << record.error;
      EXPECT_EQ(counter(record, "pushes_applied") % (which.servers * 2), 0) << model[0] << seed;
      EXPECT_EQ(counter(record, "pushes_duplicated"), 0);
      EXPECT_EQ(counter(record, "workers_expelled"), 0);
      for (int rank = 1; rank < kWorkers; ++rank)
        EXPECT_EQ(record.nodes[static_cast<size_t>(rank)].parameters_sha256,
                  record.nodes.front().parameters_sha256);
      EXPECT_EQ(record.evaluations.back().samples, kEpochs * 389) << model[0] << ", seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EverySchedule,
                         testing::Values(Case{2, 1}, Case{3, 1}, Case{3, 2}, Case{5, 2}),
                         [](const auto& test) {
                           return std::to_string(test.param.servers) + "Servers" +
                                  std::to_string(test.param.replicas) + "Replicas";
                         });

}  // namespace
}  // namespace tutti

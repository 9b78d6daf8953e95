// Rows of sparse models on servers that are killed: with copies on others nothing that was
// acknowledged is lost and nothing is applied twice; without, a run goes on from its snapshots.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "tests/strategies/parameter_server/kills.h"
#include "tests/strategies/parameter_server/rows.h"

namespace tutti {
namespace {

using namespace testing_support;

constexpr int kWorkers = 3;
constexpr int64_t kSteps = 2 * 14;  // epochs, steps
constexpr int kShardsPerServer = 2;

struct Case {
  int servers, replicas;
};

const Settings kDeterministic = {"task.deterministic=true"};

Job rows_job(const Case& which, const std::string& consistency, const Settings& more = {}) {
  return load_job(
      "",
      ratings_task() + servers(which.servers, consistency) + cluster("virtual", kWorkers) +
          Settings{"strategy.replicas=" + std::to_string(which.replicas), "cluster.timeout=20"} +
          more);
}

// Every push reaches every shard once, and each row is made once, whoever serves it in the end.
void expect_exactly_once(const RunRecord& record, const Case& which) {
  EXPECT_EQ(counter(record, "pushes_applied"),
            kSteps * kWorkers * which.servers * kShardsPerServer);
  EXPECT_EQ(counter(record, "pushes_duplicated"), 0);
  EXPECT_EQ(counter(record, "pushes_dropped"), 0);
  EXPECT_EQ(counter(record, "workers_expelled"), 0);
  EXPECT_EQ(counter(record, "workers_lost"), 0);
  EXPECT_EQ(counter(record, "rows_made"), 91);
}

class EveryRing : public testing::TestWithParam<Case> {};

// With every kind of state beside the rows.
TEST_P(EveryRing, LosesNothingUnderBsp) {
  const Case which = GetParam();
  int64_t lost = 0, resent = 0, taken_over = 0;
  for (const std::string optimizer : {"sgd", "momentum", "adagrad", "adam"}) {
    const Settings settings = kDeterministic + Settings{"optimizer.kind=" + optimizer};
    Job undisturbed = rows_job(which, "bsp", settings);
    const RunRecord expected = run_job(undisturbed);
    ASSERT_EQ(expected.status, RunStatus::kDone) << expected.error;
    expect_exactly_once(expected, which);
    // Copies make no difference to the result.
    Job alone = rows_job({which.servers, 0}, "bsp", settings);
    EXPECT_EQ(run_job(alone).nodes.front().parameters_sha256,
              expected.nodes.front().parameters_sha256);
    const double longest_s = duration_s(undisturbed);
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      Random random(seed, Stream::kFault);
      Job job = rows_job(which, "bsp", settings);
      const auto victims = 1 + static_cast<int>(random.below(uint64_t(which.replicas)));
      kill_servers(job, which.servers, victims, longest_s, random);
      const RunRecord record = run_job(job);
      ASSERT_EQ(record.status, RunStatus::kDone)
          << optimizer << ", seed " << seed << ": " << record.error;
      ASSERT_EQ(record.nodes.front().parameters_sha256, expected.nodes.front().parameters_sha256)
          << optimizer << ", seed " << seed;
      expect_exactly_once(record, which);
      if (HasFailure()) FAIL() << optimizer << ", seed " << seed;
      lost += static_cast<int64_t>(lost_nodes(record).size());
      resent += counter(record, "pushes_resent");
      taken_over += counter(record, "shards_taken_over");
    }
  }
  EXPECT_GE(lost, 30);
  EXPECT_GE(taken_over, 30);
  EXPECT_GT(resent, 0);  // or the moments were all harmless
}

TEST_P(EveryRing, AppliesEveryPushOnceInEveryModel) {
  const Case which = GetParam();
  for (const std::string consistency : {"bsp", "asp", "ssp", "adaptive", "backup"}) {
    const double longest_s = duration_s(rows_job(which, consistency));
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      Random random(seed, Stream::kFault);
      Job job = rows_job(which, consistency);
      kill_servers(job, which.servers, which.replicas, longest_s, random);
      const RunRecord record = run_job(job);
      ASSERT_EQ(record.status, RunStatus::kDone)
          << consistency << ", seed " << seed << ": " << record.error;
      if (consistency != "backup") expect_exactly_once(record, which);
      EXPECT_EQ(counter(record, "stale_reads"), 0);
      for (int rank = 1; rank < kWorkers; ++rank)
        EXPECT_EQ(record.nodes[static_cast<size_t>(rank)].parameters_sha256,
                  record.nodes.front().parameters_sha256);
      if (HasFailure()) FAIL() << consistency << ", seed " << seed;
    }
  }
}

// Servers are killed one after the other and come back or not: tables move to new members.
TEST_P(EveryRing, MovesRowsWithoutLosingAny) {
  const Case which = GetParam();
  const Settings adam = Settings{"optimizer.kind=adam"};
  Job undisturbed = rows_job(which, "bsp", kDeterministic + adam);
  const RunRecord expected = run_job(undisturbed);
  ASSERT_EQ(expected.status, RunStatus::kDone) << expected.error;
  const double longest_s = duration_s(undisturbed);
  int64_t moved = 0;
  for (const std::string consistency : {"bsp", "asp", "ssp", "adaptive", "backup"})
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      Random random(seed, Stream::kFault);
      const bool exact = consistency == "bsp";
      Job job = rows_job(which, consistency, adam + (exact ? kDeterministic : Settings{}));
      add_faults(job, which.servers, longest_s, random);
      const RunRecord record = run_job(job);
      ASSERT_EQ(record.status, RunStatus::kDone)
          << consistency << ", seed " << seed << ": " << record.error << describe(job);
      if (exact) {
        ASSERT_EQ(record.nodes.front().parameters_sha256, expected.nodes.front().parameters_sha256)
            << "seed " << seed << describe(job);
      }
      if (consistency != "backup") expect_exactly_once(record, which);
      if (HasFailure()) FAIL() << consistency << ", seed " << seed << describe(job);
      moved += counter(record, "shards_moved");
    }
  EXPECT_GT(moved, 50);
}

INSTANTIATE_TEST_SUITE_P(All, EveryRing, testing::Values(Case{2, 1}, Case{3, 1}, Case{3, 2}),
                         [](const auto& test) {
                           return std::to_string(test.param.servers) + "Servers" +
                                  std::to_string(test.param.replicas) + "Replicas";
                         });

// A worker goes as well: the step closes without what it had not sent, and training goes on.
TEST(RowReplicas, SurviveTheLossOfAWorkerToo) {
  const Case which{3, 1};
  for (const std::string consistency : {"bsp", "asp", "ssp", "adaptive", "backup"}) {
    const double longest_s = duration_s(rows_job(which, consistency));
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      Random random(seed, Stream::kTest);
      Job job = rows_job(which, consistency);
      const double at_s = random.uniform() * longest_s;
      kill_servers(job, which.servers, 1, longest_s, random);
      if (seed % 2) job.cluster.faults.front().at_s = at_s;  // together
      job.cluster.faults.push_back(
          {.at_s = at_s, .nodes = {static_cast<int64_t>(random.below(2) + 1)}});
      const RunRecord record = run_job(job);
      ASSERT_EQ(record.status, RunStatus::kDone)
          << consistency << ", seed " << seed << ": " << record.error << describe(job);
      EXPECT_EQ(counter(record, "pushes_duplicated"), 0);
      EXPECT_EQ(counter(record, "workers_expelled"), 0);
    }
  }
}

// Copies cost what they cost, also of states that move.
TEST(RowReplicas, CostTheSameWhenOnlyCostsCount) {
  const Settings at_once = {"optimizer.kind=adagrad"};
  Job full_job = rows_job({3, 1}, "bsp", at_once);
  Job cost_job = rows_job({3, 1}, "bsp", at_once + Settings{"cluster.cost_only=true"});
  for (Job* job : {&full_job, &cost_job})
    job->cluster.faults.push_back({.at_s = 0.01, .nodes = {kWorkers + 1}});
  const RunRecord full = run_job(full_job), costs = run_job(cost_job);
  ASSERT_EQ(full.status, RunStatus::kDone) << full.error;
  ASSERT_EQ(costs.status, RunStatus::kDone) << costs.error;
  EXPECT_GT(counter(full, "shards_moved"), 0);
  EXPECT_EQ(counter(full, "rows_made"), counter(costs, "rows_made"));
  for (size_t i = 0; i < full.nodes.size(); ++i) {
    EXPECT_EQ(full.nodes[i].bytes_sent, costs.nodes[i].bytes_sent) << i;
    EXPECT_DOUBLE_EQ(full.nodes[i].total_s, costs.nodes[i].total_s) << i;
  }
}

// Kills the victim after this time; false: it had finished by then.
bool survives_kill(const Settings& settings, Rank victim, double after_s,
                   const std::string& expected) {
  Job job = load_job("", settings);
  const auto outcomes = run_nodes(job, [&](Node& node) -> std::optional<std::string> {
    if (node.endpoint().rank() == victim) {
      signal(SIGALRM, [](int) { raise(SIGKILL); });
      ualarm(static_cast<useconds_t>(1 + std::min(0.9, after_s) * 1e6), 0);
    }
    return std::nullopt;
  });
  bool killed = false;
  for (Rank rank = 0; rank < static_cast<Rank>(outcomes.size()); ++rank) {
    const NodeOutcome& outcome = outcomes[static_cast<size_t>(rank)];
    if (rank == victim) {
      killed = outcome.kind == NodeOutcome::Kind::kLost;
      continue;
    }
    EXPECT_EQ(outcome.kind, NodeOutcome::Kind::kDone) << outcome.error;
    if (rank >= 2 || outcome.kind != NodeOutcome::Kind::kDone) continue;
    EXPECT_EQ(node_report(outcome.result).parameters_sha256, expected);
  }
  return killed;
}

// SIGKILL of a real process at 10 random moments. One that came too late is tried again in half the
// time, so that all ten are of a server at work, however fast the machine is.
TEST(RowReplicas, SurviveSigkillOfProcesses) {
  const Settings settings =
      ratings_task() + servers(2, "bsp") + cluster("process", 2) + kDeterministic +
      Settings{"strategy.replicas=1", "task.epochs=20", "task.data.test=0", "task.eval_every=20"};
  const RunRecord expected = run(settings);
  ASSERT_EQ(expected.status, RunStatus::kDone) << expected.error;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Random random(seed, Stream::kFault);
    const auto victim = 2 + static_cast<Rank>(random.below(2));
    double after_s = random.uniform() * expected.nodes.front().total_s;
    while (!survives_kill(settings, victim, after_s, expected.nodes.front().parameters_sha256) &&
           after_s > 1e-5)
      after_s /= 2;
    if (HasFailure()) FAIL() << "seed " << seed;
    EXPECT_GT(after_s, 1e-5) << "seed " << seed;
  }
}

Settings snapshot_settings(const std::string& consistency, const std::string& fabric) {
  return ratings_task() + servers(2, consistency) + cluster(fabric, kWorkers) +
         Settings{"strategy.snapshot_every=5", "cluster.timeout=20"};
}

// Loses the second server at this time.
RunRecord interrupted_run(const Settings& settings, double at_s, const std::string& out) {
  Job job = load_job("", settings);
  job.cluster.faults.push_back({.at_s = at_s, .nodes = {kWorkers + 1}});
  const std::atomic<bool> never{false};
  return launch(job, {.out = out, .keep_files = true, .progress = ProgressStyle::kNone}, never);
}

TEST(RowSnapshots, GoOnToTheSameResultUnderBsp) {
  for (const std::string optimizer : {"sgd", "momentum", "adagrad", "adam"}) {
    const TemporaryFolder folder;
    const Settings settings = snapshot_settings("bsp", "virtual") + kDeterministic +
                              Settings{"optimizer.kind=" + optimizer};
    const RunRecord whole = run(settings);
    ASSERT_EQ(whole.status, RunStatus::kDone) << whole.error;
    const RunRecord lost =
        interrupted_run(settings, whole.nodes.front().total_s * 0.7, folder / "lost");
    EXPECT_EQ(lost.exit_code, kExitPeerLost);
    EXPECT_NE(lost.error.find("strategy.resume=" + (folder / "lost")), std::string::npos)
        << lost.error;
    const RunRecord again = run(settings + Settings{"strategy.resume=" + (folder / "lost")});
    ASSERT_EQ(again.status, RunStatus::kDone) << again.error;
    EXPECT_EQ(again.nodes.front().parameters_sha256, whole.nodes.front().parameters_sha256)
        << optimizer;
    EXPECT_GE(counter(again, "resumed_at_update"), 10);
    EXPECT_LT(again.nodes.front().steps, whole.nodes.front().steps);
    // Rows of another width are another model's.
    try {
      run(settings + Settings{"strategy.resume=" + (folder / "lost"), "task.model.rank=5"});
      ADD_FAILURE() << "it went on with another model";
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find("task.model.rank 3 -> 5"), std::string::npos)
          << error.what();
    }
  }
}

TEST(RowSnapshots, LearnFromEverySampleInEveryModel) {
  for (const std::string consistency : {"asp", "ssp", "adaptive", "backup"}) {
    const TemporaryFolder folder;
    const Settings settings = snapshot_settings(consistency, "virtual");
    const RunRecord whole = run(settings);
    const RunRecord lost =
        interrupted_run(settings, whole.nodes.front().total_s * 0.7, folder / "lost");
    EXPECT_EQ(lost.exit_code, kExitPeerLost) << lost.error;
    const RunRecord resumed = run(settings + Settings{"strategy.resume=" + (folder / "lost")});
    ASSERT_EQ(resumed.status, RunStatus::kDone) << consistency << ": " << resumed.error;
    EXPECT_GT(counter(resumed, "resumed_at_update"), 0);
    EXPECT_EQ(resumed.evaluations.back().samples, whole.evaluations.back().samples) << consistency;
  }
}

TEST(RowSnapshots, OfProcessesGoOnToo) {
  const TemporaryFolder folder;
  const Settings settings = snapshot_settings("bsp", "process") + kDeterministic;
  const RunRecord whole = run(settings, folder / "whole");
  ASSERT_EQ(whole.status, RunStatus::kDone) << whole.error;
  EXPECT_EQ(checksum(settings + Settings{"strategy.resume=" + (folder / "whole")}),
            whole.nodes.front().parameters_sha256);
}

}  // namespace
}  // namespace tutti

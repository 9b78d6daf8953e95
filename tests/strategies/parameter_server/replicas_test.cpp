// Servers that are killed at any moment, with copies of their shards on others: nothing that was
// acknowledged is lost, nothing is applied twice, and training goes on.
#include <gtest/gtest.h>
#include <sys/time.h>

#include <cmath>
#include <csignal>
#include <fstream>

#include "core/random.h"
#include "tests/strategies/parameter_server/kills.h"
#include "tests/support/thorough.h"

namespace tutti {
namespace {

using namespace testing_support;

constexpr int kWorkers = 3;

Settings replicated(int servers_count, int replicas, const std::string& consistency) {
  return servers(servers_count, consistency) +
         Settings{"strategy.replicas=" + std::to_string(replicas)};
}

Job replicated_job(int servers_count, int replicas, const std::string& consistency,
                   const Settings& more = {}) {
  return load_job("", logistic_task() + replicated(servers_count, replicas, consistency) +
                          cluster("virtual", kWorkers) +
                          Settings{"task.epochs=2", "cluster.timeout=20", "cluster.detect=0.05"} +
                          more);
}

constexpr int kShardsPerServer = 2;  // unless it is set

// Every push reaches every shard once. `pushes` is the number of each shard's.
void expect_exactly_once(const RunRecord& record, int64_t pushes, int servers_count) {
  EXPECT_EQ(counter(record, "pushes_applied"), pushes * servers_count * kShardsPerServer);
  EXPECT_EQ(counter(record, "pushes_duplicated"), 0);
  EXPECT_EQ(counter(record, "pushes_dropped"), 0);
  EXPECT_EQ(counter(record, "workers_expelled"), 0);
  EXPECT_EQ(counter(record, "workers_lost"), 0);
}

constexpr int64_t kPushes = 2 * 11 * kWorkers;  // epochs, steps

struct Ring {
  int servers, replicas;
};

class EveryRing : public testing::TestWithParam<Ring> {};

// 100 moments in all, one to `replicas` servers each: bitwise the undisturbed result.
TEST_P(EveryRing, LosesNothingUnderBsp) {
  const auto [count, replicas] = GetParam();
  const Settings deterministic = {"task.deterministic=true"};
  Job undisturbed = replicated_job(count, replicas, "bsp", deterministic);
  const RunRecord expected = run_job(undisturbed);
  ASSERT_EQ(expected.status, RunStatus::kDone) << expected.error;
  expect_exactly_once(expected, kPushes, count);
  Job alone = load_job("", logistic_task() + Settings{"strategy.kind=solo", "cluster.workers=1",
                                                      "cluster.fabric=virtual", "task.epochs=2",
                                                      "task.deterministic=true"});
  EXPECT_EQ(run_job(alone).nodes.front().parameters_sha256,
            expected.nodes.front().parameters_sha256);
  const double longest_s = duration_s(undisturbed);
  int64_t lost = 0, resent = 0, taken_over = 0;
  for (uint64_t seed = 1; seed <= seeds(34, 102); ++seed) {
    Random random(seed, Stream::kFault);
    Job job = replicated_job(count, replicas, "bsp", deterministic);
    const auto victims = 1 + static_cast<int>(random.below(static_cast<uint64_t>(replicas)));
    kill_servers(job, count, victims, longest_s, random);
    const RunRecord record = run_job(job);
    ASSERT_EQ(record.status, RunStatus::kDone) << "seed " << seed << ": " << record.error;
    ASSERT_EQ(record.nodes.front().parameters_sha256, expected.nodes.front().parameters_sha256)
        << "seed " << seed;
    expect_exactly_once(record, kPushes, count);
    if (HasFailure()) FAIL() << "seed " << seed;
    lost += static_cast<int64_t>(lost_nodes(record).size());
    resent += counter(record, "pushes_resent");
    taken_over += counter(record, "shards_taken_over");
  }
  EXPECT_GE(lost, 30);
  EXPECT_GE(taken_over, 30);
  EXPECT_GT(resent, 0);  // or the moments were all harmless
}

TEST_P(EveryRing, AppliesEveryPushOnceInEveryModel) {
  const auto [count, replicas] = GetParam();
  for (const std::string consistency : {"bsp", "asp", "ssp", "adaptive", "backup"}) {
    Job undisturbed = replicated_job(count, replicas, consistency);
    const double longest_s = duration_s(undisturbed);
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      Random random(seed, Stream::kFault);
      Job job = replicated_job(count, replicas, consistency);
      kill_servers(job, count, replicas, longest_s, random);
      const RunRecord record = run_job(job);
      ASSERT_EQ(record.status, RunStatus::kDone)
          << consistency << ", seed " << seed << ": " << record.error;
      if (consistency != "backup") expect_exactly_once(record, kPushes, count);
      for (int rank = 1; rank < kWorkers; ++rank)
        EXPECT_EQ(record.nodes[static_cast<size_t>(rank)].parameters_sha256,
                  record.nodes.front().parameters_sha256);
      EXPECT_EQ(record.evaluations.size(), 2u);
      if (HasFailure()) FAIL() << consistency << ", seed " << seed;
    }
  }
}

// What is pushed without asking for an answer is kept as well until the chain has it.
TEST_P(EveryRing, KeepsWhatIsPushedBetweenPulls) {
  const auto [count, replicas] = GetParam();
  const std::vector<Settings> settings = {{"strategy.prefetch=true"}, {"strategy.pull_every=3"}};
  for (const Settings& more : settings) {
    const double longest_s = duration_s(replicated_job(count, replicas, "ssp", more));
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      Random random(seed, Stream::kFault);
      Job job = replicated_job(count, replicas, "ssp", more);
      kill_servers(job, count, replicas, longest_s, random);
      const RunRecord record = run_job(job);
      ASSERT_EQ(record.status, RunStatus::kDone)
          << more[0] << ", seed " << seed << ": " << record.error;
      EXPECT_EQ(counter(record, "pushes_duplicated"), 0);
      EXPECT_EQ(counter(record, "workers_expelled"), 0);
      EXPECT_EQ(counter(record, "pushes_applied") % (count * kShardsPerServer), 0);  // all the same
      const EvaluationRow& last = record.evaluations.back();
      EXPECT_NEAR(last.epoch, 2, 1e-9) << more[0] << ", seed " << seed;
      EXPECT_EQ(last.samples, 2 * 389) << more[0] << ", seed " << seed;
    }
  }
}

// Workers and servers at once. In lockstep nothing is lost by that either.
TEST_P(EveryRing, LosesNothingWithAWorkerEither) {
  const auto [count, replicas] = GetParam();
  const Settings deterministic = {"task.deterministic=true"};
  Job undisturbed = replicated_job(count, replicas, "bsp", deterministic);
  const RunRecord expected = run_job(undisturbed);
  const double longest_s = duration_s(undisturbed);
  for (uint64_t seed = 1; seed <= seeds(20, 102); ++seed) {
    Random random(seed, Stream::kTest);
    Job job = replicated_job(count, replicas, "bsp", deterministic);
    const double at_s = random.uniform() * longest_s;
    kill_servers(job, count, replicas, longest_s, random);
    job.cluster.faults.push_back(
        {.at_s = at_s, .nodes = {static_cast<int64_t>(random.below(2) + 1)}});
    // Half of the time they go together.
    if (seed % 2) job.cluster.faults.front().at_s = at_s + 0.002 * (random.uniform() - 0.5);
    job.cluster.faults.front().at_s = std::max(0.0, job.cluster.faults.front().at_s);
    const RunRecord record = run_job(job);
    ASSERT_EQ(record.status, RunStatus::kDone) << "seed " << seed << ": " << record.error;
    ASSERT_EQ(record.nodes.front().parameters_sha256, expected.nodes.front().parameters_sha256)
        << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryRing, testing::Values(Ring{2, 1}, Ring{3, 2}, Ring{4, 1}),
                         [](const auto& test) {
                           return std::to_string(test.param.servers) + "Servers" +
                                  std::to_string(test.param.replicas) + "Replicas";
                         });

// At once, not when a deadline has passed: those that are left say that they have no copy.
TEST(Replicas, MoreLossesThanCopiesEndTheRun) {
  for (const std::string consistency : {"bsp", "asp", "ssp", "adaptive", "backup"})
    for (const double restart_s : {0.0, 0.001})
      for (const int lost : {2, 3}) {
        Job job = replicated_job(3, 1, consistency);
        for (int server = 0; server < lost; ++server)
          job.cluster.faults.push_back(
              {.at_s = 0.01, .nodes = {kWorkers + server}, .restart_s = restart_s});
        const RunRecord record = run_job(job);
        EXPECT_EQ(record.exit_code, kExitPeerLost);
        EXPECT_NE(record.error.find("every server is lost that had a copy"), std::string::npos)
            << consistency << ": " << record.error;
        EXPECT_LT(record.nodes.front().total_s, 0.1) << consistency << ", " << lost << " lost";
      }
}

// The longest time between two steps of rank 0, of the series in the folder of a run.
double longest_pause_s(const std::string& folder) {
  std::ifstream series(folder + "/series.csv");
  std::string line;
  std::getline(series, line);
  double before_s = 0, longest_s = 0;
  int rows = 0;
  for (; std::getline(series, line); ++rows) {
    const double time_s = std::stod(line.substr(line.find(',') + 1));
    longest_s = std::max(longest_s, time_s - before_s);
    before_s = time_s;
  }
  EXPECT_GT(rows, 400);
  return longest_s;
}

// Runs the job and kills the process of rank `victim` after this long, if it still runs by then.
std::vector<NodeOutcome> run_and_kill(Job& job, Rank victim, double after_s,
                                      const std::string& folder) {
  return run_nodes(
      job,
      [&](Node& node) -> std::optional<std::string> {
        if (node.endpoint().rank() == victim) {
          signal(SIGALRM, [](int) { raise(SIGKILL); });
          itimerval alarm{};
          alarm.it_value.tv_sec = static_cast<time_t>(after_s);
          alarm.it_value.tv_usec =
              1 + static_cast<suseconds_t>((after_s - std::floor(after_s)) * 999'998);
          setitimer(ITIMER_REAL, &alarm, nullptr);
        }
        return std::nullopt;
      },
      folder);
}

// SIGKILL of a real process at 10 random moments: the result is the same, and training goes on
// within 3 s, which is what is promised. It takes a tenth of that; as nobody knows what else the
// machine does, half of the times must keep to it.
TEST(Replicas, SurviveSigkillOfProcesses) {
  const Settings task = logistic_task() + cluster("process", 2) +
                        Settings{"task.epochs=40", "task.eval_every=20", "task.deterministic=true",
                                 "task.data.test=0"};
  Job undisturbed = load_job("", task + replicated(2, 1, "bsp"));
  const RunRecord expected = run_job(undisturbed);
  ASSERT_EQ(expected.status, RunStatus::kDone) << expected.error;
  double longest_s = 0;
  for (const NodeReport& node : expected.nodes) longest_s = std::max(longest_s, node.total_s);
  int in_time = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Random random(seed, Stream::kFault);
    const auto victim = 2 + static_cast<Rank>(random.below(2));
    double after_s = random.uniform() * longest_s;
    bool killed = false;
    // A run may be over before its time has come: then sooner.
    for (int attempt = 0; attempt < 10 && !killed; ++attempt, after_s /= 2) {
      Job job = load_job("", task + replicated(2, 1, "bsp"));
      const TemporaryFolder folder;
      const auto outcomes = run_and_kill(job, victim, after_s, folder.path());
      killed = outcomes[static_cast<size_t>(victim)].kind == NodeOutcome::Kind::kLost;
      if (killed) in_time += longest_pause_s(folder.path()) < 3 ? 1 : 0;
      for (Rank rank = 0; rank < 4; ++rank) {
        if (rank == victim) continue;
        const NodeOutcome& outcome = outcomes[static_cast<size_t>(rank)];
        ASSERT_EQ(outcome.kind, NodeOutcome::Kind::kDone) << seed << ": " << outcome.error;
        if (rank >= 2) continue;
        const NodeReport report = node_report(outcome.result);
        EXPECT_EQ(report.parameters_sha256, expected.nodes.front().parameters_sha256) << seed;
      }
    }
    EXPECT_TRUE(killed) << seed;
  }
  EXPECT_GE(in_time, 5);
}

}  // namespace
}  // namespace tutti

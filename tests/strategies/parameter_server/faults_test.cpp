// Workers that die, sleep or talk nonsense, and servers that die.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "core/random.h"
#include "fabric/exchange.h"
#include "strategies/parameter_server/entry.h"
#include "tests/strategies/parameter_server/runs.h"
#include "tests/support/thorough.h"

namespace tutti {
namespace {

using namespace testing_support;

Job faulty_job(const std::string& consistency, const Settings& more) {
  return load_job("", logistic_task() + servers(2, consistency) + cluster("virtual", 4) +
                          Settings{"task.epochs=3", "cluster.timeout=20", "cluster.detect=0.05"} +
                          more);
}

class EveryConsistency : public testing::TestWithParam<std::string> {};

// At 40 random moments: the others go on, in their own time, and learn from what it left.
TEST_P(EveryConsistency, GoesOnWithoutALostWorker) {
  int lost = 0;
  for (uint64_t seed = 1; seed <= seeds(40, 160); ++seed) {
    Random random(seed, Stream::kTest);
    Job job = faulty_job(GetParam(), {"task.seed=" + std::to_string(seed)});
    const auto victim = static_cast<int64_t>(random.below(4));
    job.cluster.faults.push_back({.at_s = random.uniform() * 0.03, .nodes = {victim}});
    const RunRecord record = run_job(job);
    ASSERT_EQ(record.status, RunStatus::kDone) << "seed " << seed << ": " << record.error;
    EXPECT_EQ(counter(record, "pushes_duplicated"), 0);
    if (lost_nodes(record).empty()) continue;  // it had ended before
    ++lost;
    EXPECT_EQ(lost_nodes(record), std::vector<int>{static_cast<int>(victim)});
    for (const NodeReport& node : record.nodes)
      if (node.role == "worker") {
        EXPECT_EQ(node.parameters_sha256, record.nodes.front().parameters_sha256) << seed;
      }
    EXPECT_GE(record.evaluations.size(), 3u) << seed;  // servers measure, whoever is lost
    EXPECT_GE(record.evaluations.back().samples, 3 * 389) << seed;
  }
  EXPECT_GT(lost, 10);
}

INSTANTIATE_TEST_SUITE_P(All, EveryConsistency,
                         testing::Values("bsp", "asp", "ssp", "adaptive", "backup"),
                         [](const auto& test) { return test.param; });

// In lockstep the gradients of the lost worker are computed again by others: the result is bitwise
// the one of the undisturbed run, and so of one worker alone.
TEST(Bsp, LosesNothingWithAWorker) {
  const Settings deterministic = {"task.deterministic=true"};
  Job undisturbed = faulty_job("bsp", deterministic);
  const std::string expected = run_job(undisturbed).nodes.front().parameters_sha256;
  int64_t repeated = 0;
  int lost = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed, Stream::kFault);
    Job job = faulty_job("bsp", deterministic);
    const uint64_t victims = 1 + random.below(2);
    for (uint64_t i = 0; i < victims; ++i)
      job.cluster.faults.push_back({.at_s = random.uniform() * 0.03,
                                    .nodes = {static_cast<int64_t>(2 * i + random.below(2))}});
    const RunRecord record = run_job(job);
    ASSERT_EQ(record.status, RunStatus::kDone) << "seed " << seed << ": " << record.error;
    ASSERT_EQ(record.nodes.front().parameters_sha256, expected) << "seed " << seed;
    repeated += counter(record, "gradients_repeated");
    lost += static_cast<int>(lost_nodes(record).size());
  }
  EXPECT_GT(lost, 30);
  EXPECT_GT(repeated, 10);  // or the moments were all harmless
}

TEST(Server, ThatDiesEndsTheRunWithItsName) {
  for (const char* consistency : {"bsp", "asp", "backup"})
    for (const int64_t victim : {4, 5}) {
      Job job = faulty_job(consistency, {});
      job.cluster.faults.push_back({.at_s = 0.02, .nodes = {victim}});
      const RunRecord record = run_job(job);
      EXPECT_EQ(record.exit_code, kExitPeerLost) << record.error;
      EXPECT_NE(record.error.find("rank " + std::to_string(victim)), std::string::npos)
          << record.error;
    }
}

TEST(Workers, ThatAllDieEndTheRun) {
  Job job = faulty_job("asp", {});
  job.cluster.faults.push_back({.at_s = 0.02, .nodes = {0, 1, 2, 3}});
  const RunRecord record = run_job(job);
  EXPECT_EQ(record.exit_code, kExitPeerLost) << record.error;
}

TEST(Worker, ThatIsSlowIsNotMistakenForDead) {
  for (const char* consistency : {"bsp", "ssp", "backup"}) {
    Job job = faulty_job(consistency, {});
    job.cluster.stragglers.push_back(
        {.kind = StragglerKind::kPause, .node = 1, .at_s = 0.01, .duration_s = 15});
    const RunRecord record = run_job(job);
    ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
    EXPECT_TRUE(lost_nodes(record).empty());
    EXPECT_EQ(counter(record, "workers_lost"), 0);
  }
}

TEST(Worker, ThatComesBackReceivesTheCurrentModel) {
  for (const char* consistency : {"bsp", "asp", "ssp", "backup"}) {
    Job job = faulty_job(consistency, {"task.epochs=20"});
    job.cluster.faults.push_back({.at_s = 0.02, .nodes = {1}, .restart_s = 0.05});
    const RunRecord record = run_job(job);
    ASSERT_EQ(record.status, RunStatus::kDone) << consistency << ": " << record.error;
    EXPECT_TRUE(lost_nodes(record).empty());
    EXPECT_EQ(counter(record, "workers_joined"), 2) << consistency;  // two servers saw it
    for (const NodeReport& node : record.nodes)
      if (node.role == "worker") {
        EXPECT_GT(node.steps, 0) << consistency;
        EXPECT_EQ(node.parameters_sha256, record.nodes.front().parameters_sha256) << consistency;
      }
  }
}

TEST(Process, GoesOnWithoutAKilledWorker) {
  for (const char* consistency : {"bsp", "asp", "ssp", "backup"})
    for (const int victim : {0, 2}) {
      Job job = load_job("", logistic_task() + servers(2, consistency) + cluster("process", 3) +
                                 Settings{"task.epochs=60", "task.eval_every=30"});
      const auto outcomes = run_nodes(job, [&](Node& node) -> std::optional<std::string> {
        if (node.endpoint().rank() == victim) ualarm(60000, 0);  // nothing handles that
        return std::nullopt;
      });
      ASSERT_EQ(outcomes[static_cast<size_t>(victim)].kind, NodeOutcome::Kind::kLost);
      for (int rank = 0; rank < 5; ++rank) {
        const NodeOutcome& outcome = outcomes[static_cast<size_t>(rank)];
        if (rank != victim) {
          EXPECT_EQ(outcome.kind, NodeOutcome::Kind::kDone) << consistency << ": " << outcome.error;
        }
      }
    }
}

// On one host a gradient stays where its worker computed it until all of the step are there. When
// that worker has to compute one for a worker that was killed, the first must not be overwritten:
// one wrong gradient changes the loss by 8e-5. The order of sums, which is another one from then
// on, changes it by a rounding error.
TEST(Process, KeepsWhatWasPushedWhenAnotherWorkerIsKilled) {
  const Settings settings =
      logistic_task() + servers(2, "bsp") + cluster("process", 3) +
      Settings{"task.data.features=100", "task.epochs=4", "task.eval_every=4", "optimizer.lr=0.01"};
  Job undisturbed = load_job("", settings);
  const RunRecord expected = run_job(undisturbed);
  ASSERT_EQ(expected.status, RunStatus::kDone) << expected.error;
  const NodeReport& whole = expected.nodes.front();
  int64_t repeated = 0;
  for (uint64_t seed = 1; seed <= 30 && repeated < 4; ++seed) {
    Random random(seed, Stream::kFault);
    const double after_s = std::min(0.9, random.uniform() * whole.total_s);
    Job job = load_job("", settings);
    const auto outcomes = run_nodes(job, [&](Node& node) -> std::optional<std::string> {
      if (node.endpoint().rank() == 2) ualarm(static_cast<useconds_t>(1 + after_s * 1e6), 0);
      return std::nullopt;
    });
    for (const Rank rank : {0, 1, 3, 4}) {
      const NodeOutcome& outcome = outcomes[static_cast<size_t>(rank)];
      ASSERT_EQ(outcome.kind, NodeOutcome::Kind::kDone) << seed << ": " << outcome.error;
      const NodeReport report = node_report(outcome.result);
      if (report.counters.count("gradients_repeated"))
        repeated += report.counters.at("gradients_repeated");
      if (rank == 3) {  // the first server, which measures
        EXPECT_NEAR(report.evaluations.back().loss, expected.evaluations.back().loss, 1e-5) << seed;
      }
    }
  }
  EXPECT_GT(repeated, 0);  // or the moments were all harmless
}

namespace ps = parameter_server;

// Sends whatever comes to mind, in requests that are more and more like real ones.
std::string talk_nonsense(Node& node, uint64_t seed, Rank first_server, int servers) {
  Random random(seed, Stream::kTest);
  const auto send = [&](Rank server, Tag tag, std::span<const std::byte> bytes) {
    Handle handle = node.endpoint().send(server, tag, bytes);
    node.endpoint().wait(handle, 1);
  };
  for (int i = 0; i < 20; ++i) {
    const Rank server =
        first_server + static_cast<Rank>(random.below(static_cast<uint64_t>(servers)));
    ps::Request request;
    request.sequence = static_cast<uint64_t>(i + 1);
    // All but saying that its loss is not a number, which rightly ends the run.
    request.flags = static_cast<uint32_t>(random.below(4096)) & ~uint32_t{ps::Request::kLeave};
    request.clock = static_cast<int64_t>(random.below(3));
    request.version = static_cast<int64_t>(random.below(3));
    request.hand = {0, 0, 1, static_cast<int32_t>(random.below(4)), 4};
    request.steps = 1;
    request.share = {.id = static_cast<int64_t>(random.below(3)), .begin = 0, .end = 4};
    std::vector<std::byte> bytes(sizeof(request) + 64);
    std::memcpy(bytes.data(), &request, sizeof(request));
    size_t length = sizeof(request);
    if (random.below(3) == 0) length = random.below(bytes.size());
    const uint64_t changes = random.below(4);
    for (uint64_t k = 0; k < changes; ++k)
      bytes[random.below(bytes.size())] = static_cast<std::byte>(random.below(256));
    send(server, ps::request_tag(), std::span(bytes).first(length));
    if (random.below(4) == 0) {  // as if it were a server
      ps::Entry entry;
      entry.kind = static_cast<uint32_t>(random.below(ps::Entry::kKinds + 1));
      entry.shard = static_cast<int32_t>(random.below(3));
      entry.index = random.below(100);
      entry.request = request;
      send(server, ps::entry_tag(),
           std::as_bytes(std::span(&entry, 1)).first(sizeof(entry) - random.below(2)));
    }
    if (random.below(2))
      send(server, ps::gradient_tag(static_cast<uint64_t>(i + 1), random.below(2)),
           std::vector<std::byte>(random.below(2000)));
  }
  // If all of that made sense so far: this does not.
  for (Rank server = first_server; server < first_server + servers; ++server)
    send(server, ps::request_tag(), std::vector<std::byte>(7));
  return "";
}

// It ends its own part, never the servers', and the others learn as if it had died.
TEST(Fuzz, AHostileWorkerIsExpelledAndTrainingGoesOn) {
  for (uint64_t seed = 1; seed <= 60; ++seed)
    for (const char* consistency : {"bsp", "ssp", "backup"}) {
      // The final test is no server's business: it would wait for the hostile node as for any.
      Job job = faulty_job(consistency,
                           {"task.data.test=0", "strategy.replicas=" + std::to_string(seed % 2)});
      const auto outcomes = run_nodes(job, [&](Node& node) -> std::optional<std::string> {
        if (node.endpoint().rank() != 2) return std::nullopt;
        return talk_nonsense(node, seed, 4, 2);
      });
      for (const size_t rank : {0u, 1u, 3u, 4u, 5u})
        EXPECT_EQ(outcomes[rank].kind, NodeOutcome::Kind::kDone)
            << "seed " << seed << " " << consistency << " rank " << rank << ": "
            << outcomes[rank].error;
    }
}

TEST(Fuzz, AHostileProcessIsExpelledToo) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Job job = load_job("", logistic_task() + servers(2, "ssp") + cluster("process", 4) +
                               Settings{"task.data.test=0"});
    const auto outcomes = run_nodes(job, [&](Node& node) -> std::optional<std::string> {
      if (node.endpoint().rank() != 2) return std::nullopt;
      return talk_nonsense(node, seed, 4, 2);
    });
    for (const size_t rank : {0u, 1u, 3u, 4u, 5u})
      EXPECT_EQ(outcomes[rank].kind, NodeOutcome::Kind::kDone)
          << "seed " << seed << " rank " << rank << ": " << outcomes[rank].error;
  }
}

}  // namespace
}  // namespace tutti

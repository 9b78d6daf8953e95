// The parameter server with sparse models: only touched rows travel, and it makes no difference.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "core/bytes.h"
#include "core/error.h"
#include "core/random.h"
#include "fabric/exchange.h"
#include "sparse/keys.h"
#include "strategies/parameter_server/messages.h"
#include "tests/strategies/parameter_server/rows.h"
#include "tests/support/parameters.h"
#include "tests/support/thorough.h"

namespace tutti {
namespace {

using namespace testing_support;
namespace ps = parameter_server;

// A file of 400 rows with 8 of 300 features each; two classes.
Settings clicks_task(const TemporaryFolder& folder) {
  std::ofstream file(folder / "clicks");
  Random random(4, Stream::kTest);
  for (int i = 0; i < 400; ++i) {
    uint64_t column = 0;
    std::string text;
    int sum = 0;
    for (int j = 0; j < 8; ++j) {
      column += 1 + random.below(36);
      text += " " + std::to_string(column) + ":1";
      sum += column % 3 == 0 ? 1 : -1;
    }
    file << (sum > -3 ? "1" : "-1") << text << "\n";
  }
  return {"task.data={kind=\"libsvm\", path=\"" + (folder / "clicks") + "\"}",
          "task.model=sparse_logistic",
          "task.global_batch=32",
          "task.epochs=2",
          "optimizer.kind=adagrad",
          "optimizer.lr=0.1",
          "cluster.timeout=60"};
}

// Bitwise, on both fabrics, for any number of servers and workers.
TEST(SparseEquivalence, BspIsSoloAndAllReduce) {
  const TemporaryFolder folder;
  const Settings exact = {"task.deterministic=true"};
  for (const Settings& task : {ratings_task(), clicks_task(folder)}) {
    const std::string expected = checksum(task + exact + solo());
    EXPECT_EQ(checksum(task + exact + cluster("process", 3) + Settings{"strategy.kind=allreduce"}),
              expected);
    for (const int count : {1, 3})
      for (const int workers : {1, 2, 5})
        EXPECT_EQ(checksum(task + exact + servers(count, "bsp") + cluster("virtual", workers)),
                  expected)
            << count << " servers, " << workers << " workers";
    EXPECT_EQ(checksum(task + exact + servers(2, "bsp") + cluster("process", 2)), expected);
  }
}

// Without `deterministic` only the order of sums differs: 33 steps of rate 0.05 on gradients of
// order 1, each off by a few units of 2^-24, for parameters of order 1.
TEST(SparseEquivalence, HoldsUpToRoundingOtherwise) {
  const std::vector<float> expected = parameters_after(ratings_task() + solo());
  for (const int workers : {2, 4}) {
    const auto actual =
        parameters_after(ratings_task() + servers(2, "bsp") + cluster("process", workers));
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 2e-5) << i;
  }
}

class EveryConsistency : public testing::TestWithParam<std::string> {};

TEST_P(EveryConsistency, LearnsFromSparseRows) {
  const Settings task = ratings_task() + Settings{"task.data.samples=4000", "task.epochs=8",
                                                  "optimizer.kind=adagrad", "optimizer.lr=0.2"};
  Job job = load_job("", task + servers(2, GetParam()) + cluster("virtual", 4));
  const RunRecord record = run_job(job);
  ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
  const auto& rows = record.evaluations;
  ASSERT_GE(rows.size(), 2u);
  EXPECT_LT(rows.back().quality, 0.25);  // the variance of the ratings is about 0.43
  EXPECT_EQ(counter(record, "stale_reads"), 0);
  EXPECT_EQ(counter(record, "pushes_duplicated"), 0);
  for (const NodeReport& node : record.nodes)
    if (node.role == "worker") {
      EXPECT_EQ(node.parameters_sha256, record.nodes.front().parameters_sha256);
    }
  // The servers made the rows that were touched: all 90 and the bias.
  EXPECT_EQ(counter(record, "rows_made"), 91);
}

TEST_P(EveryConsistency, GoesOnWithoutALostWorker) {
  int lost = 0;
  for (uint64_t seed = 1; seed <= seeds(20, 100); ++seed) {
    Random random(seed, Stream::kTest);
    Job job =
        load_job("", ratings_task() + servers(2, GetParam()) + cluster("virtual", 4) +
                         Settings{"task.epochs=3", "cluster.timeout=20", "cluster.detect=0.05",
                                  "task.seed=" + std::to_string(seed)});
    const auto victim = static_cast<int64_t>(random.below(4));
    job.cluster.faults.push_back({.at_s = random.uniform() * 0.03, .nodes = {victim}});
    const RunRecord record = run_job(job);
    ASSERT_EQ(record.status, RunStatus::kDone) << "seed " << seed << ": " << record.error;
    lost += static_cast<int>(counter(record, "workers_lost") > 0);
    for (const NodeReport& node : record.nodes)
      if (node.role == "worker") {
        EXPECT_EQ(node.parameters_sha256, record.nodes.front().parameters_sha256) << seed;
      }
  }
  EXPECT_GT(lost, 4);
}

// Keys that do not ascend, occur twice, do not exist, belong to another server or are more than
// there are rows; rows of another width.
std::string send_bad_rows(Node& node, uint64_t seed, Rank first_server, int server_count) {
  const auto send = [&](Tag tag, std::span<const std::byte> bytes) {
    Handle handle = node.endpoint().send(first_server, tag, bytes);
    node.endpoint().wait(handle, 0.2);
  };
  std::vector<uint64_t> mine, others;
  for (uint64_t key = 0; mine.size() < 4 || others.empty(); ++key)
    (server_of(key, static_cast<size_t>(server_count)) == 0 ? mine : others).push_back(key);
  mine.resize(4);
  std::vector<uint64_t> keys = mine;
  size_t width = 4;
  ps::Request request;
  request.sequence = 1;
  request.flags = seed % 2 ? ps::Request::kPush : ps::Request::kPull | ps::Request::kRows;
  request.hand = {0, 0, 1, 2, 4};
  request.steps = 1;
  switch (seed / 2 % 6) {
    case 0:
      std::swap(keys[1], keys[2]);
      break;
    case 1:
      keys[2] = keys[1];
      break;
    case 2:
      keys[3] = uint64_t{1} << 40;
      break;
    case 3:
      keys.assign({others[0]});
      break;
    case 4:
      width = 7;
      break;
    default:
      keys.resize(100);
      break;
  }
  request.keys = static_cast<int32_t>(keys.size());
  send(ps::request_tag(), std::as_bytes(std::span<const ps::Request>(&request, 1)));
  const auto stream = static_cast<uint64_t>(server_count);  // of request 1 to shard 0
  send(ps::keys_tag(stream), bytes_of(std::span<const uint64_t>(keys)));
  const std::vector<float> gradients(keys.size() * width);
  send(ps::gradient_tag(stream, 0), bytes_of(std::span<const float>(gradients)));
  // If all of that made sense so far: this does not.
  for (Rank server = first_server; server < first_server + server_count; ++server) {
    Handle handle = node.endpoint().send(server, ps::request_tag(), std::vector<std::byte>(7));
    node.endpoint().wait(handle, 0.2);
  }
  return "";
}

TEST_P(EveryConsistency, ExpelsAWorkerWhoseKeysMakeNoSense) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    Job job = load_job("", ratings_task() + servers(2, GetParam()) + cluster("virtual", 4) +
                               Settings{"task.data.test=0", "cluster.timeout=20"});
    const auto outcomes = run_nodes(job, [&](Node& node) -> std::optional<std::string> {
      if (node.endpoint().rank() != 2) return std::nullopt;
      return send_bad_rows(node, seed, 4, 2);
    });
    for (const size_t rank : {0u, 1u, 3u, 4u, 5u})
      EXPECT_EQ(outcomes[rank].kind, NodeOutcome::Kind::kDone)
          << "seed " << seed << " rank " << rank << ": " << outcomes[rank].error;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryConsistency,
                         testing::Values("bsp", "asp", "ssp", "adaptive", "backup"),
                         [](const auto& test) { return test.param; });

// Servers make what was touched, 10 rows of 3,001.
TEST(SparseServer, MakesTouchedRowsOnly) {
  const TemporaryFolder folder;
  std::ofstream file(folder / "wide");
  for (int i = 0; i < 2000; ++i)
    file << (i % 2) << " " << 1 + i % 7 << ":1 " << (i % 2 ? 2000 : 3000) << ":1\n";
  file.close();
  Job job = load_job(
      "", Settings{"task.data={kind=\"libsvm\", path=\"" + (folder / "wide") + "\"}",
                   "task.model=sparse_logistic", "task.global_batch=50", "cluster.timeout=60"} +
              servers(2, "asp") + cluster("process", 2));
  const RunRecord record = run_job(job);
  ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
  EXPECT_EQ(counter(record, "rows_made"), 7 + 2 + 1);
}

// Costs alone: the same keys, so the same bytes and the same virtual time.
TEST(SparseCosts, AreThoseOfTheFullRun) {
  const Settings task = ratings_task() + servers(2, "bsp") + cluster("virtual", 3);
  const RunRecord full = run(task), costs = run(task + Settings{"cluster.cost_only=true"});
  ASSERT_EQ(full.status, RunStatus::kDone) << full.error;
  ASSERT_EQ(costs.status, RunStatus::kDone) << costs.error;
  ASSERT_EQ(full.nodes.size(), costs.nodes.size());
  for (size_t i = 0; i < full.nodes.size(); ++i) {
    EXPECT_EQ(full.nodes[i].bytes_sent, costs.nodes[i].bytes_sent);
    EXPECT_EQ(full.nodes[i].total_s, costs.nodes[i].total_s);
  }
}

Settings on_servers() { return servers(2, "ssp") + cluster("process", 2); }

void expect_refused(const Settings& more, const std::string& key) {
  Job job = load_job("", ratings_task() + more);
  try {
    resolve(job);
    ADD_FAILURE() << "was accepted: " << more.back();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.key(), key) << error.what();
  }
}

TEST(SparseCheck, RefusesWhatCannotWork) {
  expect_refused(on_servers() + Settings{"strategy.pull_every=4"}, "strategy.pull_every");
  expect_refused(on_servers() + Settings{"strategy.prefetch=true"}, "strategy.prefetch");
  expect_refused(on_servers() + Settings{"strategy.shards=layers"}, "strategy.shards");
  expect_refused(on_servers() + Settings{"optimizer.kind=nesterov"}, "optimizer.kind");
  expect_refused(on_servers() + Settings{"optimizer.weight_decay=0.1"}, "optimizer.weight_decay");
  expect_refused(on_servers() + Settings{"optimizer.clip_norm=1"}, "optimizer.clip_norm");
  // More rows than a strategy that moves all of them should.
  expect_refused({"strategy.kind=allreduce", "task.data.users=900000", "task.data.items=900000"},
                 "strategy.kind");
}

TEST(SparseCheck, RefusesDenseData) {
  Job job = load_job("", logistic_task() + Settings{"task.model=sparse_logistic"});
  EXPECT_THROW(resolve(job), ConfigError);
}

}  // namespace
}  // namespace tutti

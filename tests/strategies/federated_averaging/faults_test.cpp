// Lost workers are made up for by the others, a lost server ends the run, nonsense is refused.
#include <gtest/gtest.h>

#include "core/random.h"
#include "fabric/exchange.h"
#include "jobs/participant.h"
#include "jobs/plugins.h"
#include "strategies/federated_averaging/messages.h"
#include "tests/support/faults.h"
#include "tests/support/thorough.h"

namespace tutti {
namespace {

using namespace testing_support;

Settings fault_task(const Settings& more) {
  return logistic_task() +
         Settings{"strategy.kind=federated_averaging",
                  "strategy.clients=12",
                  "strategy.client_batch=4",
                  "strategy.fraction=0.75",
                  "task.epochs=6",
                  "cluster.workers=4",
                  "cluster.timeout=20"} +
         more;
}

Settings virtual_fault_task(const Settings& more) {
  return fault_task({"cluster.fabric=virtual", "cluster.step_overhead=0",
                     "cluster.layer_overhead=0", "cluster.speed=\"10 MFLOP/s\"",
                     "cluster.detect=0.05"}) +
         more;
}

TEST(FederatedFaults, ALostWorkersClientsGoToOthersAndNothingElseChanges) {
  const std::string expected = checksum(virtual_fault_task({}));
  for (const int64_t victim : {0, 2})
    for (const double at_s : {0.0004, 0.003, 0.0061, 0.0123}) {
      Job job = load_job("", virtual_fault_task({}));
      job.cluster.faults.push_back({.at_s = at_s, .nodes = {victim}});
      const RunRecord record = run_job(job);
      ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
      ASSERT_EQ(record.nodes.size(), 4u);
      for (const NodeReport& node : record.nodes)
        if (node.role == "worker") {
          EXPECT_EQ(node.parameters_sha256, expected) << victim << " at " << at_s;
        }
      EXPECT_EQ(record.nodes.back().counters.at("workers_lost"), 1);
    }
}

TEST(FederatedFaults, AWorkerThatComesBackTakesPartAgain) {
  const std::string expected = checksum(virtual_fault_task({}));
  Job job = load_job("", virtual_fault_task({}));
  job.cluster.faults.push_back({.at_s = 0.003, .nodes = {2}, .restart_s = 0.002});
  const RunRecord record = run_job(job);
  ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
  EXPECT_EQ(record.nodes[0].parameters_sha256, expected);
  EXPECT_EQ(record.nodes.back().counters.at("workers_joined"), 1);
}

TEST(FederatedFaults, WithoutTheServerEverybodyEndsAndNamesIt) {
  Job job = load_job("", virtual_fault_task({}));
  job.cluster.faults.push_back({.at_s = 0.003, .nodes = {4}});
  const RunRecord record = run_job(job);
  EXPECT_EQ(record.exit_code, kExitPeerLost);
  for (size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(record.outcomes[rank].lost_peer, 4);
}

TEST(FederatedFaults, WithoutAnyWorkerTheServerEnds) {
  Job job = load_job("", virtual_fault_task({}));
  job.cluster.faults.push_back({.at_s = 0.003, .nodes = {0, 1, 2, 3}});
  const RunRecord record = run_job(job);
  EXPECT_EQ(record.exit_code, kExitPeerLost);
  EXPECT_NE(record.outcomes[4].error.find("nobody is left"), std::string::npos)
      << record.outcomes[4].error;
}

TEST(FederatedFaults, DivergenceIsToldToEverybody) {
  for (const char* fabric : {"virtual", "process"}) {
    Job job = load_job("", fault_task({"optimizer.lr=1e38", "task.data.noise=100",
                                       "cluster.fabric=" + std::string(fabric)}));
    const RunRecord record = run_job(job);
    EXPECT_EQ(record.status, RunStatus::kDiverged) << record.error;
    for (const NodeOutcome& outcome : record.outcomes)
      EXPECT_EQ(outcome.exit_code, kExitDiverged) << outcome.error;
  }
}

Job random_job(uint64_t seed) {
  Random random(seed, Stream::kFault);
  const auto workers = static_cast<int64_t>(2 + random.below(5));
  Settings settings = virtual_fault_task(
      {"task.seed=" + std::to_string(seed), "cluster.workers=" + std::to_string(workers)});
  if (random.below(2)) settings.push_back("strategy.deadline=\"2 ms\"");
  if (random.below(2)) settings.push_back("strategy.dropout=0.2");
  if (random.below(2)) settings.push_back("strategy.over_select=1.2");
  // Small messages are eager, large ones wait for their receive.
  if (random.below(2)) settings.push_back("task.data.features=5000");
  Job job = load_job("", settings);
  for (uint64_t i = random.below(4); i > 0; --i) {
    constexpr FaultKind kKinds[] = {FaultKind::kCrash, FaultKind::kLinkDown, FaultKind::kPartition};
    FaultConfig fault;
    fault.kind = kKinds[random.below(3)];
    fault.at_s = random.uniform() * 0.03;
    fault.nodes = {static_cast<int64_t>(random.below(static_cast<uint64_t>(workers + 1)))};
    if (fault.kind != FaultKind::kCrash)
      fault.duration_s = random.below(2) ? random.uniform() * 0.1 : 0;
    job.cluster.faults.push_back(fault);
  }
  if (random.below(2))
    job.cluster.stragglers.push_back({.kind = StragglerKind::kRandom,
                                      .factor = 5,
                                      .probability = 0.2,
                                      .distribution = Slowness::kExponential});
  return job;
}

TEST(FederatedFaults, AHundredRandomSchedulesEndInAStatedOutcome) {
  int whole = 0, survived = 0, ended = 0;
  for (uint64_t seed = 1; seed <= seeds(100, 500); ++seed) {
    Job job = random_job(seed);
    const RunRecord record = run_job(job);
    const std::string outcome = stated_outcome(record.outcomes);
    ASSERT_EQ(outcome.find_first_not_of("dlf"), std::string::npos)
        << "seed " << seed << ": " << outcome;
    if (record.status != RunStatus::kDone)
      ++ended;
    else if (outcome.find('l') != std::string::npos)
      ++survived;
    else
      ++whole;
  }
  EXPECT_GT(whole, 10);
  EXPECT_GT(survived, 10);
  EXPECT_GT(ended, 10);
}

TEST(FederatedFaults, ReplayExactly) {
  for (const uint64_t seed : {5u, 23u, 71u}) {
    Job first = random_job(seed), second = random_job(seed);
    const RunRecord a = run_job(first), b = run_job(second);
    EXPECT_EQ(stated_outcome(a.outcomes), stated_outcome(b.outcomes));
    ASSERT_EQ(a.nodes.size(), b.nodes.size());
    for (size_t i = 0; i < a.nodes.size(); ++i) EXPECT_EQ(to_text(a.nodes[i]), to_text(b.nodes[i]));
  }
}

// Rank 1 answers its first order with an update of the wrong size, or with a report that is none.
TEST(FederatedFaults, NonsenseIsRefusedAndTheOthersGoOn) {
  namespace fed = federated_averaging;
  for (const bool in_the_update : {true, false}) {
    Job job = load_job("", virtual_fault_task({"task.data.test=0"}));
    const Resolved resolved = resolve(job);
    const Stage stage{.resolved = resolved, .models = load_torch_models(1), .folder = ""};
    const auto fabric = make_fabric(job.cluster, resolved.plan.roles(), job.task.seed);
    const std::atomic<bool> never{false};
    const auto outcomes = fabric->run(
        [&](Node& node) -> std::string {
          if (node.endpoint().rank() != 1) return participate(stage, node);
          fed::Report report;
          const auto tell = [&] {
            send(node, 4, fed::report_tag(),
                 std::as_bytes(std::span<const fed::Report>(&report, 1)));
          };
          tell();
          fed::Order order;
          receive(node, 4, fed::order_tag(), std::as_writable_bytes(std::span(&order, 1)));
          report.kind = fed::Report::kTrained;
          report.sequence = order.sequence;
          report.round = order.round;
          report.client = in_the_update ? order.client : order.client + 1;
          report.steps = report.samples = 1;
          tell();
          if (in_the_update)
            send(node, 4, fed::update_tag(order.sequence, 0), std::vector<std::byte>(12));
          receive(node, 4, fed::order_tag(), std::as_writable_bytes(std::span(&order, 1)));
          return std::to_string(order.kind);
        },
        never);
    EXPECT_EQ(outcomes[1].result, std::to_string(fed::Order::kRefused));
    for (const size_t rank : {0u, 2u, 3u, 4u})
      EXPECT_EQ(outcomes[rank].kind, NodeOutcome::Kind::kDone) << outcomes[rank].error;
  }
}

}  // namespace
}  // namespace tutti

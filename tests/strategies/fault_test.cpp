// Random faults in virtual time: every run ends in a stated outcome, replays, and never hangs.
#include <gtest/gtest.h>

#include <set>

#include "core/random.h"
#include "fabric/exchange.h"
#include "jobs/plugins.h"
#include "tests/support/faults.h"

namespace tutti {
namespace {

using namespace testing_support;

Job random_job(uint64_t seed) {
  Random random(seed, Stream::kFault);
  const char* topologies[] = {"ring", "butterfly", "tree", "all_to_all", "hierarchical", "direct"};
  const std::string topology = topologies[random.below(6)];
  const auto workers = static_cast<int64_t>(2 + random.below(7));
  Settings settings = logistic_task() + Settings{"task.seed=" + std::to_string(seed),
                                                 "cluster.fabric=virtual",
                                                 "cluster.workers=" + std::to_string(workers),
                                                 "cluster.speed=\"10 MFLOP/s\"",
                                                 "cluster.timeout=20",
                                                 "cluster.detect=0.05",
                                                 "strategy.topology=" + topology};
  if (topology == "direct") settings.push_back("cluster.nodes_per_host=" + std::to_string(workers));
  if (topology == "hierarchical") settings.push_back("cluster.racks=2");
  Job job = load_job("", settings);
  const uint64_t faults = random.below(4);
  for (uint64_t i = 0; i < faults; ++i) {
    FaultConfig fault;
    const char* kinds[] = {"crash", "link_down", "partition"};
    fault.kind = topology == "direct" ? "crash" : kinds[random.below(3)];
    fault.at_s = random.uniform() * 0.05;
    fault.nodes = {static_cast<int64_t>(random.below(static_cast<uint64_t>(workers)))};
    if (fault.kind != "crash") fault.duration_s = random.below(2) ? random.uniform() * 0.1 : 0;
    job.cluster.faults.push_back(fault);
  }
  if (random.below(2))
    job.cluster.stragglers.push_back(
        {.kind = "random", .factor = 5, .probability = 0.2, .distribution = "exponential"});
  return job;
}

TEST(RandomFaults, TwoHundredSchedulesEndInAStatedOutcome) {
  int done = 0, ended_by_loss = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Job job = random_job(seed);
    const RunRecord record = run_job(job);
    const std::string outcome = stated_outcome(record.outcomes);
    ASSERT_EQ(outcome.find_first_not_of("dlf"), std::string::npos)
        << "seed " << seed << ": " << outcome;
    // Synchronous training ends for all or for none, unless the fault came after the end.
    if (record.status == "done")
      ++done;
    else
      ++ended_by_loss;
    if (outcome.find('f') != std::string::npos)
      for (const NodeOutcome& node : record.outcomes)
        if (node.kind == NodeOutcome::Kind::kFailed) {
          EXPECT_NE(node.error.find("step"), std::string::npos) << node.error;
        }
  }
  // The schedules must exercise both ends, or the test shows nothing.
  EXPECT_GT(done, 20);
  EXPECT_GT(ended_by_loss, 20);
}

TEST(RandomFaults, ReplayExactly) {
  for (const uint64_t seed : {3u, 17u, 42u, 99u}) {
    Job first = random_job(seed), second = random_job(seed);
    const RunRecord a = run_job(first), b = run_job(second);
    ASSERT_EQ(a.nodes.size(), b.nodes.size());
    EXPECT_EQ(stated_outcome(a.outcomes), stated_outcome(b.outcomes));
    for (size_t i = 0; i < a.nodes.size(); ++i) EXPECT_EQ(to_text(a.nodes[i]), to_text(b.nodes[i]));
  }
}

// The harness must be able to fail: two nodes that each wait for the other first.
TEST(RandomFaults, HarnessCatchesAPlantedDeadlock) {
  ClusterConfig cluster;
  cluster.fabric = "virtual";
  const auto fabric = make_fabric(cluster, {"worker", "worker"}, 1);
  const std::atomic<bool> never{false};
  const auto outcomes = fabric->run(
      [](Node& node) -> std::string {
        std::byte buffer[1];
        const Rank other = 1 - node.endpoint().rank();
        Handle handle = node.endpoint().receive(other, Tag(Purpose::kUser, 1), buffer);
        require_done(node, node.endpoint().wait(handle, std::numeric_limits<double>::infinity()));
        return "";
      },
      never);
  EXPECT_EQ(stated_outcome(outcomes), "deadlock") << outcomes[0].error;
}

// One crash in the middle of each topology: everyone who is left names the same rank and a step.
TEST(Crash, EverySurvivorNamesTheLostPeerAndTheStep) {
  for (const char* topology : {"ring", "butterfly", "tree", "all_to_all", "hierarchical", "direct"})
    for (const int64_t victim : {0, 2, 4}) {
      Settings settings = logistic_task() + Settings{"cluster.fabric=virtual", "cluster.workers=5",
                                                     "cluster.speed=\"10 MFLOP/s\"",
                                                     "strategy.topology=" + std::string(topology)};
      if (std::string(topology) == "direct") settings.push_back("cluster.nodes_per_host=5");
      if (std::string(topology) == "hierarchical") settings.push_back("cluster.racks=2");
      Job job = load_job("", settings);
      job.cluster.faults.push_back({.kind = "crash", .at_s = 0.003, .nodes = {victim}});
      const RunRecord record = run_job(job);
      EXPECT_EQ(record.exit_code, kExitPeerLost) << topology;
      for (int64_t rank = 0; rank < 5; ++rank) {
        const NodeOutcome& outcome = record.outcomes[static_cast<size_t>(rank)];
        if (rank == victim) {
          EXPECT_EQ(outcome.kind, NodeOutcome::Kind::kLost);
          continue;
        }
        EXPECT_EQ(outcome.lost_peer, victim) << topology << ": " << outcome.error;
        EXPECT_NE(outcome.error.find("at step"), std::string::npos) << outcome.error;
      }
    }
}

}  // namespace
}  // namespace tutti

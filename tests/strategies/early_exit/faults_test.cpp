// A lost tier ends the run, and everybody who is left says who it was.
#include <gtest/gtest.h>

#include "core/random.h"
#include "tests/support/faults.h"

namespace tutti {
namespace {

using namespace testing_support;

Settings three_tiers() {
  return {"task.data.kind=synthetic-classes",
          "task.data.samples=480",
          "task.data.features=16",
          "task.data.classes=4",
          "task.model.kind=mlp",
          "task.model.hidden=[16, 16]",
          "task.global_batch=48",
          "optimizer.lr=0.05",
          "strategy.kind=early_exit",
          "strategy.devices=2",
          "cluster.fabric=virtual",
          "cluster.workers=4",
          "cluster.speed=\"10 MFLOP/s\"",
          "cluster.step_overhead=0",
          "cluster.layer_overhead=0",
          "cluster.timeout=20",
          "cluster.detect=0.05"};
}

// The network has two devices that see a part each, their aggregator, edge and cloud.
Settings parts_and_tiers() {
  return three_tiers() + Settings{"strategy.views=parts", "strategy.cuts=[2, 4]",
                                  "strategy.fuse_scores=concat", "cluster.workers=5"};
}

void expect_the_peer_named(const Settings& settings, int64_t nodes) {
  for (int64_t victim = 0; victim < nodes; ++victim) {
    Job job = load_job("", settings);
    job.cluster.faults.push_back({.at_s = 0.01, .nodes = {victim}});
    const RunRecord record = run_job(job);
    EXPECT_EQ(record.exit_code, kExitPeerLost) << victim;
    for (int64_t rank = 0; rank < nodes; ++rank) {
      const NodeOutcome& outcome = record.outcomes[static_cast<size_t>(rank)];
      if (rank == victim) continue;
      EXPECT_EQ(outcome.lost_peer, victim) << outcome.error;
      EXPECT_NE(outcome.error.find("at step"), std::string::npos) << outcome.error;
    }
  }
}

TEST(EarlyExitFaults, EverySurvivorNamesThePeer) { expect_the_peer_named(three_tiers(), 4); }

TEST(EarlyExitFaults, EverySurvivorOfThoseThatSeePartsNamesThePeer) {
  expect_the_peer_named(parts_and_tiers(), 5);
}

// At any time: while it trains, measures or answers.
TEST(EarlyExitFaults, RandomFaultsEndInAStatedOutcome) {
  expect_stated_outcomes(60, 0.12, 10, [](Random&) { return load_job("", three_tiers()); });
}

TEST(EarlyExitFaults, RandomFaultsOfThoseThatSeePartsEndInAStatedOutcome) {
  expect_stated_outcomes(60, 0.12, 10, [](Random&) { return load_job("", parts_and_tiers()); });
}

}  // namespace
}  // namespace tutti

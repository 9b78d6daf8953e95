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
          "cluster.timeout=20",
          "cluster.detect=0.05"};
}

TEST(EarlyExitFaults, EverySurvivorNamesThePeer) {
  for (const int64_t victim : {0, 1, 2, 3}) {
    Job job = load_job("", three_tiers());
    job.cluster.faults.push_back({.kind = "crash", .at_s = 0.01, .nodes = {victim}});
    const RunRecord record = run_job(job);
    EXPECT_EQ(record.exit_code, kExitPeerLost) << victim;
    for (int64_t rank = 0; rank < 4; ++rank) {
      const NodeOutcome& outcome = record.outcomes[static_cast<size_t>(rank)];
      if (rank == victim) continue;
      EXPECT_EQ(outcome.lost_peer, victim) << outcome.error;
      EXPECT_NE(outcome.error.find("at step"), std::string::npos) << outcome.error;
    }
  }
}

// At any time: while it trains, measures or answers.
TEST(EarlyExitFaults, RandomFaultsEndInAStatedOutcome) {
  int done = 0, ended_by_loss = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed, Stream::kFault);
    Job job = load_job("", three_tiers());
    for (uint64_t i = random.below(3); i > 0; --i) {
      FaultConfig fault;
      const char* kinds[] = {"crash", "link_down", "partition"};
      fault.kind = kinds[random.below(3)];
      fault.at_s = random.uniform() * 0.12;
      fault.nodes = {static_cast<int64_t>(random.below(4))};
      if (fault.kind != "crash") fault.duration_s = random.below(2) ? random.uniform() * 0.1 : 0;
      job.cluster.faults.push_back(fault);
    }
    const RunRecord record = run_job(job);
    const std::string outcome = stated_outcome(record.outcomes);
    ASSERT_EQ(outcome.find_first_not_of("dlf"), std::string::npos)
        << "seed " << seed << ": " << outcome;
    ++(record.status == "done" ? done : ended_by_loss);
  }
  EXPECT_GT(done, 10);
  EXPECT_GT(ended_by_loss, 10);
}

}  // namespace
}  // namespace tutti

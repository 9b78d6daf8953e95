// A lost worker or scheduler ends the run, and everybody who is left says who it was.
#include <gtest/gtest.h>

#include "core/random.h"
#include "tests/support/faults.h"

namespace tutti {
namespace {

using namespace testing_support;

constexpr int64_t kNodes = 4;  // the scheduler is the last

Settings three_workers() {
  return {"task.data.kind=synthetic-linear",
          "task.data.samples=200",
          "task.data.features=32",
          "task.model.kind=linear",
          "task.model.l1=0.05",
          "task.epochs=20",
          "strategy.kind=scheduled",
          "strategy.parallel=4",
          "cluster.fabric=virtual",
          "cluster.workers=3",
          "cluster.speed=\"10 MFLOP/s\"",
          "cluster.timeout=20",
          "cluster.detect=0.05"};
}

TEST(ScheduledFaults, EverySurvivorNamesThePeer) {
  for (int64_t victim = 0; victim < kNodes; ++victim) {
    Job job = load_job("", three_workers());
    job.cluster.faults.push_back({.kind = "crash", .at_s = 0.02, .nodes = {victim}});
    const RunRecord record = run_job(job);
    EXPECT_EQ(record.exit_code, kExitPeerLost) << victim;
    for (int64_t rank = 0; rank < kNodes; ++rank) {
      const NodeOutcome& outcome = record.outcomes[static_cast<size_t>(rank)];
      if (rank == victim) continue;
      EXPECT_EQ(outcome.lost_peer, victim) << outcome.error;
      EXPECT_NE(outcome.error.find("at step"), std::string::npos) << outcome.error;
    }
  }
}

TEST(ScheduledFaults, RandomFaultsEndInAStatedOutcome) {
  int done = 0, ended_by_loss = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed, Stream::kFault);
    Job job = load_job("", three_workers());
    for (uint64_t i = random.below(3); i > 0; --i) {
      FaultConfig fault;
      const char* kinds[] = {"crash", "link_down", "partition"};
      fault.kind = kinds[random.below(3)];
      fault.at_s = random.uniform() * 0.2;
      fault.nodes = {static_cast<int64_t>(random.below(kNodes))};
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

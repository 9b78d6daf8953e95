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
          "cluster.step_overhead=0",
          "cluster.layer_overhead=0",
          "cluster.timeout=20",
          "cluster.detect=0.05"};
}

TEST(ScheduledFaults, EverySurvivorNamesThePeer) {
  for (int64_t victim = 0; victim < kNodes; ++victim) {
    Job job = load_job("", three_workers());
    job.cluster.faults.push_back({.at_s = 0.02, .nodes = {victim}});
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
  expect_stated_outcomes(60, 0.2, 10, [](Random&) { return load_job("", three_workers()); });
}

}  // namespace
}  // namespace tutti

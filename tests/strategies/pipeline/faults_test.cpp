// A lost stage ends the run, and everybody who is left says who and what was waited for.
#include <gtest/gtest.h>

#include "core/random.h"
#include "fabric/outcome.h"
#include "tests/support/faults.h"

namespace tutti {
namespace {

using namespace testing_support;

Settings four_stages(const std::string& schedule) {
  return {"task.data.kind=synthetic-classes",
          "task.data.samples=480",
          "task.data.features=16",
          "task.data.classes=4",
          "task.model.kind=mlp",
          "task.model.hidden=[16, 16, 16]",
          "task.global_batch=48",
          "optimizer.lr=0.05",
          "strategy.kind=pipeline",
          "strategy.schedule=\"" + schedule + "\"",
          schedule == "asynchronous" ? "strategy.micro_batches=1" : "strategy.micro_batches=4",
          "cluster.fabric=virtual",
          "cluster.workers=4",
          "cluster.speed=\"10 MFLOP/s\"",
          "cluster.step_overhead=0",
          "cluster.layer_overhead=0",
          "cluster.timeout=20",
          "cluster.detect=0.05"};
}

TEST(PipelineFaults, EverySurvivorNamesThePeerAndSomebodyTheMicroBatch) {
  for (const std::string schedule : {"sequential", "gpipe", "1f1b", "asynchronous"})
    for (const int64_t victim : {0, 1, 3}) {
      Job job = load_job("", four_stages(schedule));
      job.cluster.faults.push_back({.at_s = 0.01, .nodes = {victim}});
      const RunRecord record = run_job(job);
      EXPECT_EQ(record.exit_code, kExitPeerLost) << schedule;
      bool named = false;
      for (int64_t rank = 0; rank < 4; ++rank) {
        const NodeOutcome& outcome = record.outcomes[static_cast<size_t>(rank)];
        if (rank == victim) {
          EXPECT_EQ(outcome.kind, NodeOutcome::Kind::kLost);
          continue;
        }
        EXPECT_EQ(outcome.lost_peer, victim) << schedule << ": " << outcome.error;
        EXPECT_NE(outcome.error.find("at step"), std::string::npos) << outcome.error;
        named = named || (outcome.error.find("stage ") != std::string::npos &&
                          outcome.error.find("micro-batch ") != std::string::npos);
      }
      EXPECT_TRUE(named) << schedule << ", " << victim;
    }
}

TEST(PipelineFaults, RandomFaultsEndInAStatedOutcome) {
  expect_stated_outcomes(60, 0.05, 10, [](Random& random) {
    const char* schedules[] = {"sequential", "gpipe", "1f1b", "interleaved"};
    const std::string schedule = schedules[random.below(4)];
    Settings settings = four_stages(schedule);
    if (schedule == "interleaved")
      settings = settings + Settings{"cluster.workers=2", "strategy.stages=4"};
    else if (random.below(2))
      settings = settings + Settings{"cluster.workers=8", "strategy.replicas=2"};
    return load_job("", settings);
  });
}

}  // namespace
}  // namespace tutti

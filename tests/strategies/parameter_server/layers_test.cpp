// Parameters that come layer by layer while the forward pass goes on: the same result, in the time
// that the overlap leaves.
#include <gtest/gtest.h>

#include "core/random.h"
#include "strategies/parameter_server/layout.h"
#include "tests/strategies/parameter_server/wide.h"

namespace tutti {
namespace {

using namespace testing_support;
namespace ps = parameter_server;

TEST(Layers, MakeNoDifferenceToTheResult) {
  for (const int count : {1, 3})
    for (const std::string consistency : {"bsp", "ssp"})
      for (const std::string deterministic : {"true", "false"}) {
        if (consistency == "ssp" && (deterministic == "true" || count == 3)) continue;
        // One worker, if its speed decides what it reads.
        const int workers = consistency == "bsp" ? 3 : 1;
        const Settings settings =
            wide_task(workers) + slow_network(workers) + servers(count, consistency) +
            Settings{"task.deterministic=" + deterministic, "task.eval_every=0.5"};
        EXPECT_EQ(checksum(settings + pull("layers")), checksum(settings + pull("whole")))
            << count << " servers, " << consistency;
      }
}

// A worker is lost while pieces are on their way to it or to others.
TEST(Layers, MakeNoDifferenceWhenAWorkerIsLost) {
  const Settings settings = wide_task(3) + slow_network(3) + servers(2, "bsp") +
                            Settings{"task.deterministic=true", "task.max_steps=4"};
  const RunRecord undisturbed = run(settings + pull("whole"));
  ASSERT_EQ(undisturbed.status, RunStatus::kDone) << undisturbed.error;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Random random(seed, Stream::kFault);
    Job job = load_job("", settings + pull("layers"));
    job.cluster.faults.push_back(
        {.at_s = random.uniform() * 0.8 * undisturbed.nodes.front().total_s,
         .nodes = {1 + static_cast<int64_t>(random.below(2))}});
    const RunRecord record = run_job(job);
    ASSERT_EQ(record.status, RunStatus::kDone) << "seed " << seed << ": " << record.error;
    EXPECT_EQ(record.nodes.front().parameters_sha256, undisturbed.nodes.front().parameters_sha256)
        << "seed " << seed;
    EXPECT_GT(counter(record, "workers_lost"), 0);
  }
}

// All else is the same either way.
TEST(Layers, TakeTheTimeThatTheOverlapLeaves) {
  const Settings settings =
      wide_task(1) + slow_network(1) + servers(1, "bsp") + Settings{"cluster.cost_only=true"};
  const double saved_s = overlap_saves_s(settings);
  const double whole_s = time_s(settings + pull("whole"));
  const double layers_s = time_s(settings + pull("layers"));
  EXPECT_NEAR(whole_s - layers_s, 6 * saved_s, 0.01 * 6 * saved_s);
}

// With several servers, too, and never for the worse.
TEST(Layers, SaveTimeWithSeveralServersAndWorkers) {
  for (const std::string consistency : {"bsp", "ssp", "asp"}) {
    const Settings settings = wide_task(4) + slow_network(4) + servers(2, consistency) +
                              Settings{"cluster.cost_only=true"};
    EXPECT_LT(time_s(settings + pull("layers")), time_s(settings + pull("whole"))) << consistency;
  }
}

TEST(Layers, AreGroupedWhereTheyAreSmall) {
  const Architecture small =
      resolve(load_job("", logistic_task() + servers(1, "bsp") + cluster("virtual", 1)))
          .architecture;
  EXPECT_EQ(ps::forward_pieces_of(small, {0, small.parameter_count}).size(), 1u);
  EXPECT_TRUE(ps::forward_pieces_of(small, {0, 0}).empty());
}

}  // namespace
}  // namespace tutti

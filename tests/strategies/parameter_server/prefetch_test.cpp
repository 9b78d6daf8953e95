// The next pull while this gradient is computed, whole and layer by layer.
#include <gtest/gtest.h>

#include "core/random.h"
#include "data/batches.h"
#include "jobs/parameters_file.h"
#include "jobs/plugins.h"
#include "tests/strategies/parameter_server/wide.h"

namespace tutti {
namespace {

using namespace testing_support;

const Settings kPrefetch{"strategy.prefetch=true"};

// One worker that reads parameters without its last push: x(t + 1) = x(t) - rate g(x(t - 1)).
std::string delayed_sgd(const Settings& settings) {
  Job job = load_job("", settings);
  const Resolved resolved = resolve(job);
  const Data& data = resolved.data;
  const Architecture& architecture = resolved.architecture;
  std::vector<float> x(architecture.parameter_count), g(x.size());
  initialise(architecture, job.task.seed, x);
  std::vector<float> read = x, next = x;  // by this step and by the one after it
  const auto model = load_models(architecture, 1)
                         .whole(architecture, {.parameters = read, .gradients = g},
                                {.seed = job.task.seed, .threads = 1});
  const auto optimizer = make_optimizer(job.optimizer, x.size());
  Batches batches(data.splits.train, Partition::kGlobal, 1, job.task.seed);
  batches.begin_epoch(0, job.task.global_batch);
  Batch batch;
  for (int64_t step = 0; step < job.task.max_steps; ++step) {
    std::copy(next.begin(), next.end(), read.begin());
    next = x;
    batch.step = static_cast<uint64_t>(step);
    data.dataset->gather(batches.lane(step, 0, 1), batch);
    model->gradient(batch, 1.0f / static_cast<float>(batches.count(step)), [](Range) {});
    optimizer->step(x, g, job.optimizer.lr);
  }
  return parameters_sha256(architecture, x);
}

TEST(Prefetch, LacksTheLastPushAndNothingElse) {
  for (const std::string consistency : {"asp", "ssp", "adaptive"})
    for (const int count : {1, 3}) {
      const Settings settings =
          wide_task(1) + slow_network(1) + servers(count, consistency) + kPrefetch;
      const std::string expected = delayed_sgd(settings);
      EXPECT_EQ(checksum(settings + pull("whole")), expected) << count << " " << consistency;
      EXPECT_EQ(checksum(settings + pull("layers")), expected) << count << " " << consistency;
      // Who evaluates asks again afterwards, and gets its last push.
      const Settings often = settings + Settings{"task.eval_every=0.1"};
      EXPECT_EQ(checksum(often + pull("layers")), checksum(often + pull("whole")));
    }
}

TEST(Prefetch, LacksTheLastPushBetweenProcessesToo) {
  const Settings settings = wide_task(1) + servers(2, "asp") + cluster("process", 1) + kPrefetch;
  EXPECT_EQ(checksum(settings), delayed_sgd(settings));
}

// Only the first forward pass finds parameters on their way: gradients take as long to travel as
// parameters do, and begin later, so all other pulls have arrived when their step begins.
TEST(Prefetch, WaitsForLayersOnlyWhereTheyAreLate) {
  const Settings settings = wide_task(1) + slow_network(1) + servers(1, "asp") + kPrefetch +
                            Settings{"cluster.cost_only=true"};
  const double saved_s = overlap_saves_s(settings);
  const double whole_s = time_s(settings + pull("whole"));
  const double layers_s = time_s(settings + pull("layers"));
  EXPECT_NEAR(whole_s - layers_s, saved_s, 0.01 * saved_s);
}

TEST(Prefetch, IsNeverSlowerLayerByLayer) {
  for (const std::string consistency : {"ssp", "asp", "adaptive"}) {
    const Settings settings = wide_task(4) + slow_network(4) + servers(2, consistency) + kPrefetch +
                              Settings{"cluster.cost_only=true"};
    EXPECT_LT(time_s(settings + pull("layers")), time_s(settings + pull("whole"))) << consistency;
  }
}

// A pull that is asked for in the last of several steps lacks no push, and its time is hidden.
TEST(Prefetch, ChangesNothingButTheTimeOfSeveralStepsWithOneWorker) {
  for (const std::string consistency : {"asp", "ssp"}) {
    const Settings settings = wide_task(1) + slow_network(1) + servers(2, consistency) +
                              Settings{"strategy.pull_every=3", "strategy.staleness=0"};
    const std::string expected = checksum(settings + pull("whole"));
    EXPECT_EQ(checksum(settings + pull("layers")), expected);
    EXPECT_EQ(checksum(settings + pull("whole") + kPrefetch), expected);
    EXPECT_EQ(checksum(settings + pull("layers") + kPrefetch), expected);
    EXPECT_LT(time_s(settings + kPrefetch), time_s(settings));
  }
}

// Workers are lost while pieces of this step and of the next are on their way, and not so late that
// nobody is left to whom their hands could be dealt.
TEST(Prefetch, GoesOnWithoutALostWorker) {
  for (const std::string consistency : {"ssp", "asp"}) {
    const Settings settings = wide_task(3) + slow_network(3) + servers(2, consistency) + kPrefetch +
                              Settings{"strategy.staleness=2"};
    const RunRecord undisturbed = run(settings);
    ASSERT_EQ(undisturbed.status, RunStatus::kDone) << undisturbed.error;
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      Random random(seed, Stream::kFault);
      Job job = load_job("", settings);
      job.cluster.faults.push_back(
          {.at_s = random.uniform() * 0.5 * undisturbed.nodes.front().total_s,
           .nodes = {1 + static_cast<int64_t>(random.below(2))}});
      const RunRecord record = run_job(job);
      ASSERT_EQ(record.status, RunStatus::kDone)
          << consistency << " " << seed << ": " << record.error;
      EXPECT_GT(counter(record, "workers_lost"), 0);
      EXPECT_EQ(counter(record, "pushes_duplicated"), 0);
      EXPECT_EQ(counter(record, "stale_reads"), 0);
      ASSERT_FALSE(record.evaluations.empty());
      // Of the lost worker's last push some shards may have got more than others.
      EXPECT_GE(record.evaluations.back().samples, undisturbed.evaluations.back().samples);
    }
  }
}

TEST(Prefetch, EndsWithTheServerThatIsLost) {
  const Settings settings = wide_task(3) + slow_network(3) + servers(2, "asp") + kPrefetch;
  const RunRecord undisturbed = run(settings);
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Random random(seed, Stream::kFault);
    Job job = load_job("", settings);
    job.cluster.faults.push_back(
        {.at_s = random.uniform() * 0.8 * undisturbed.nodes.front().total_s,
         .nodes = {3 + static_cast<int64_t>(random.below(2))}});
    const RunRecord record = run_job(job);
    EXPECT_EQ(record.exit_code, 4) << record.error;
  }
}

}  // namespace
}  // namespace tutti

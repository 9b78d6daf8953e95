// Checks how far parameters move under a constant gradient where a strategy does not simply add up
// its steps: by closed forms and recursions, or with settings for which the steps do add up.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/strategies/constant_gradient.h"

namespace tutti {
namespace {

using namespace testing_support;

constexpr double kEpochs = 4, kSteps = kEpochs * 4;  // of whole batches

struct Trained {
  RunRecord record;
  std::vector<double> moved;  // weight and bias, in steps of whole batches
  double steps() const { return static_cast<double>(record.evaluations.back().step); }
  double samples() const { return static_cast<double>(record.evaluations.back().samples); }
};

class Displacement : public testing::TestWithParam<std::string> {
 protected:
  Trained train(int workers, const Settings& settings) {
    Job job = load_job("", constant_gradient(folder_ / "constant.csv") +
                               Settings{"task.global_batch=" + std::to_string(kBatch),
                                        fmt::format("task.epochs={}", kEpochs),
                                        "cluster.timeout=60", "cluster.fabric=" + GetParam(),
                                        "cluster.workers=" + std::to_string(workers)} +
                               settings);
    if (GetParam() == "virtual" && workers == 4) job.cluster.speed_factors = {1, 0.9, 0.5, 0.2};
    const std::string out = folder_ / std::to_string(++runs_);
    const std::atomic<bool> never{false};
    Trained result;
    result.record =
        launch(job, {.out = out, .keep_files = true, .progress = ProgressStyle::kNone}, never);
    EXPECT_EQ(result.record.status, RunStatus::kDone) << result.record.error;
    result.moved = steps_moved(job, out);
    return result;
  }
  TemporaryFolder folder_;
  int runs_ = 0;
};

void expect_moved(const Trained& run, double steps) {
  ASSERT_EQ(run.moved.size(), 2u);
  for (const double moved : run.moved) EXPECT_NEAR(moved, steps, 1e-4 * steps);
}

// An outer step of rate 1 without momentum goes to the mean of the workers.
TEST_P(Displacement, DilocoWithAnOuterStepOfOneAddsUp) {
  const Settings outer = {"strategy.kind=local_sgd", "strategy.sync_every=4",
                          "strategy.outer={kind=\"sgd\", lr=1}"};
  expect_moved(train(4, outer), kSteps);
  // Fragments are averaged at different steps, which changes nothing.
  expect_moved(train(4, outer + Settings{"strategy.fragments=2"}), kSteps);
}

// The published kind of outer step: a velocity of what was learnt since the last one.
TEST_P(Displacement, DilocoFollowsItsOuterMomentum) {
  const double rate = 0.5, momentum = 0.5;
  const int every = 4;
  const Trained run = train(
      4, {"strategy.kind=local_sgd", fmt::format("strategy.sync_every={}", every),
          fmt::format("strategy.outer={{kind=\"nesterov\", lr={}, momentum={}}}", rate, momentum)});
  double moved = 0, velocity = 0;
  for (int i = 0; i < kSteps / every; ++i) {
    velocity = momentum * velocity + every;
    moved += rate * (every + momentum * velocity);
  }
  expect_moved(run, moved);
}

// All workers move alike, so one of them stands for all:
// x' = x + 1 - a (x - c), c' = c + n a (x - c).
TEST_P(Displacement, ElasticAveragingFollowsItsRecursion) {
  const int workers = 4, every = 3;
  const double rate = 0.2;
  const Trained run = train(
      workers, {"strategy.kind=elastic_averaging", fmt::format("strategy.sync_every={}", every),
                fmt::format("strategy.moving_rate={}", rate)});
  double worker = 0, centre = 0;
  for (int step = 0; step < kSteps; ++step) {
    const double distance = step > 0 && step % every == 0 ? worker - centre : 0;
    worker += 1 - rate * distance;
    centre += workers * rate * distance;
  }
  expect_moved(run, centre);
}

// One worker alone follows the recursion; several meet the centre in an order that is not known,
// but each of them takes a part of the way, so it cannot go beyond the fastest.
TEST_P(Displacement, AsynchronousElasticAveragingStaysBetweenItsWorkers) {
  const int every = 3;
  const double rate = 0.2;
  const Settings settings = {"strategy.kind=elastic_averaging", "strategy.mode=async",
                             fmt::format("strategy.sync_every={}", every),
                             fmt::format("strategy.moving_rate={}", rate)};
  double worker = 0, centre = 0;
  for (int step = 1; step <= kSteps; ++step) {
    worker += 1;
    if (step % every != 0) continue;
    const double moved = rate * (worker - centre);
    worker -= moved;
    centre += moved;
  }
  expect_moved(train(1, settings), centre);
  const Trained many = train(4, settings);
  double fastest = 0;
  for (const NodeReport& node : many.record.nodes)
    fastest = std::max(fastest, static_cast<double>(node.own_samples) / (kBatch / 4));
  for (const double moved : many.moved) {
    EXPECT_GT(moved, 0);
    EXPECT_LT(moved, fastest);
  }
}

// A step is the mean of the gradients that came in time: one step each, whoever came too late.
TEST_P(Displacement, BackupWorkersMakeOneStepOfThoseInTime) {
  const Trained run = train(4, {"strategy.kind=parameter_server", "strategy.consistency=backup",
                                "strategy.backup=1", "strategy.servers=2"});
  EXPECT_GE(run.steps(), kSteps);
  EXPECT_EQ(run.samples(), kSteps * kBatch);  // each sample of each epoch was learnt from once
  expect_moved(run, run.steps());
}

INSTANTIATE_TEST_SUITE_P(Fabrics, Displacement, testing::Values("virtual", "process"),
                         [](const auto& fabric) { return fabric.param; });

// One worker loses nothing; of several, each makes steps by its own share of a batch, and some of
// these are overwritten, but none counts twice.
class Hogwild : public Displacement {};
TEST_P(Hogwild, LosesUpdatesAndInventsNone) {
  expect_moved(train(1, {"strategy.kind=hogwild"}), kSteps);
  const Trained many = train(4, {"strategy.kind=hogwild"});
  for (const double moved : many.moved) {
    EXPECT_GT(moved, 0);
    EXPECT_LE(moved, many.samples() / (kBatch / 4.0) * (1 + 1e-4));
  }
}
INSTANTIATE_TEST_SUITE_P(Fabrics, Hogwild, testing::Values("process"),
                         [](const auto& fabric) { return fabric.param; });

}  // namespace
}  // namespace tutti

// Elastic averaging against hand computations of two rounds, synchronous and asynchronous.
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/linear_reference.h"

namespace tutti {
namespace {

using namespace testing_support;

Settings elastic(const Settings& more) {
  return linear_task() +
         Settings{"strategy.kind=elastic_averaging", "strategy.sync_every=1",
                  "strategy.moving_rate=0.3", "cluster.fabric=virtual", "cluster.workers=2"} +
         more;
}

// The first step has nothing to pull, two more are two rounds.
Vector two_rounds(const LinearReference& reference, double rate, double momentum) {
  Vector centre = reference.initial();
  const size_t size = centre.size();
  Vector x[2] = {centre, centre}, v[2] = {Vector(size), Vector(size)};
  for (int64_t step = 0; step < 3; ++step) {
    Vector moved(size);
    for (const int64_t i : {0, 1}) {
      const Vector g = reference.gradient(step, i, x[i]);
      for (size_t k = 0; k < size; ++k) {
        const double pull = step > 0 ? rate * (x[i][k] - centre[k]) : 0;
        const double before = v[i][k];
        v[i][k] = momentum * before - 0.1 * g[k];
        // Nesterov, or plain SGD without momentum.
        x[i][k] += (1 + momentum) * v[i][k] - momentum * before - pull;
        moved[k] += pull;
      }
    }
    for (size_t k = 0; k < size; ++k) centre[k] += moved[k];
  }
  return centre;
}

TEST(ElasticAveraging, TwoSynchronousRoundsByHand) {
  for (const char* fabric : {"virtual", "process"}) {
    const Settings settings =
        elastic({"task.max_steps=3", "cluster.fabric=" + std::string(fabric)});
    expect_close(parameters_after(settings), two_rounds(LinearReference(settings), 0.3, 0));
  }
}

TEST(ElasticAveraging, MomentumFormByHand) {
  const Settings settings =
      elastic({"task.max_steps=3", "optimizer.kind=nesterov", "optimizer.momentum=0.9"});
  expect_close(parameters_after(settings), two_rounds(LinearReference(settings), 0.3, 0.9));
}

TEST(ElasticAveraging, PenaltyTimesRateIsTheMovingRate) {
  EXPECT_EQ(parameters_after(elastic({"task.max_steps=4"})),
            parameters_after(
                elastic({"task.max_steps=4", "strategy.moving_rate=0", "strategy.penalty=3.0"})));
}

// The rate rises from step to step, and the pull rises with it. Three updates are computed by hand.
TEST(ElasticAveraging, PenaltyFollowsTheSchedule) {
  const Settings settings = elastic({"task.max_steps=4", "task.epochs=2", "strategy.moving_rate=0",
                                     "strategy.penalty=3.0", "optimizer.warmup_epochs=1"});
  const LinearReference reference(settings);
  Vector centre = reference.initial(), x[2] = {centre, centre};
  for (int64_t step = 0; step < 4; ++step) {
    const double rate = 0.1 * static_cast<double>(step) / static_cast<double>(reference.steps());
    Vector moved(centre.size());
    for (const int64_t i : {0, 1}) {
      const Vector g = reference.gradient(step, i, x[i]);
      for (size_t k = 0; k < centre.size(); ++k) {
        const double pull = step > 0 ? 3 * rate * (x[i][k] - centre[k]) : 0;
        x[i][k] -= rate * g[k] + pull;
        moved[k] += pull;
      }
    }
    for (size_t k = 0; k < centre.size(); ++k) centre[k] += moved[k];
  }
  expect_close(parameters_after(settings), centre);
}

// Rank 1 is a hundred times faster than rank 0. It takes one step and asks the centre, and a second
// step while rank 0 is still at its first; by then all samples of one global batch are taken.
// Rank 0 serves it after its backward pass, then steps and pulls for itself: two asynchronous
// updates of the centre, in this order.
TEST(ElasticAveraging, TwoAsynchronousUpdatesByHand) {
  const Settings settings =
      elastic({"strategy.mode=async", "task.max_steps=1", "cluster.step_overhead=0",
               "cluster.layer_overhead=0", "cluster.speed=\"100 kFLOP/s\"",
               "cluster.speed_factors=[1.0, 100.0]"});
  const LinearReference reference(settings);
  Vector centre = reference.initial();
  const Vector fast = reference.stepped(0, 1, centre), slow = reference.stepped(0, 0, centre);
  for (const Vector& x : {fast, slow})
    for (size_t k = 0; k < centre.size(); ++k) centre[k] += 0.3 * (x[k] - centre[k]);
  expect_close(parameters_after(settings), centre);
}

// The rate falls to nothing after the first step of each worker, and so do the pulls of later
// steps, whether rank 0 serves a request or pulls for itself. Rank 1 asks many times: its first
// request is served within the first step of rank 0, the others in later steps.
TEST(ElasticAveraging, WhoServesFollowsTheScheduleToo) {
  const Settings settings =
      elastic({"strategy.mode=async", "strategy.moving_rate=0", "strategy.penalty=3.0",
               "task.epochs=40", "optimizer.schedule=step", "optimizer.step_epochs=0.05",
               "optimizer.step_factor=1e-9", "cluster.step_overhead=0", "cluster.layer_overhead=0",
               "cluster.speed=\"100 kFLOP/s\"", "cluster.speed_factors=[1.0, 100.0]"});
  const LinearReference reference(settings);
  Vector centre = reference.initial();
  const Vector fast = reference.stepped(0, 1, centre), slow = reference.stepped(0, 0, centre);
  for (const Vector& x : {fast, slow})
    for (size_t k = 0; k < centre.size(); ++k) centre[k] += 3 * 0.1 * (x[k] - centre[k]);
  const Trained run = trained(settings);
  expect_close(run.parameters, centre);
  // Each answer counts beside the steps; rank 0 gave one in a step.
  EXPECT_GT(run.record.nodes[1].freshness.count - run.record.nodes[1].steps, 3);
}

TEST(ElasticAveraging, LearnsInBothModesOnBothFabrics) {
  for (const char* fabric : {"virtual", "process"})
    for (const char* mode : {"sync", "async"}) {
      const Settings settings =
          logistic_task() + Settings{"strategy.kind=elastic_averaging",
                                     "strategy.mode=" + std::string(mode), "task.epochs=10",
                                     "cluster.fabric=" + std::string(fabric), "cluster.workers=4"};
      const RunRecord record = run(settings);
      ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
      EXPECT_GT(record.evaluations.back().quality, 0.9) << mode << " on " << fabric;
      for (const NodeReport& node : record.nodes)
        EXPECT_EQ(node.parameters_sha256, record.nodes[0].parameters_sha256);
    }
}

TEST(ElasticAveraging, RefusesWhatContradicts) {
  for (const Settings& bad :
       {Settings{"strategy.penalty=1.0"}, Settings{"strategy.moving_rate=0.6"},
        Settings{"task.deterministic=true"},
        Settings{"strategy.mode=async", "cluster.cost_only=true"}})
    EXPECT_THROW(resolve(load_job("", elastic(bad))), ConfigError) << bad[0];
}

}  // namespace
}  // namespace tutti

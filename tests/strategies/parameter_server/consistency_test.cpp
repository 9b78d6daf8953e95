// The rules of the consistency models by themselves.
#include "strategies/parameter_server/consistency.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "strategies/parameter_server/clock_means.h"

namespace tutti::parameter_server {
namespace {

using Kind = ConsistencyKind;

TEST(Ssp, LetsNobodyReadBeyondTheBound) {
  const auto ssp = make_consistency({.consistency = Kind::kSsp, .staleness = 2}, 4);
  EXPECT_TRUE(ssp->may_read(5, 3, ssp->bound(0), false));
  EXPECT_FALSE(ssp->may_read(6, 3, ssp->bound(0), false));
}

TEST(Waiting, FollowsTheOccupancyWithinItsLimits) {
  const auto rule = make_consistency({.consistency = Kind::kWaiting, .staleness = 2}, 2);
  const auto report = [&](double waiting, double waited_for) {
    rule->observe(0, waiting, 2);
    const int64_t before = rule->bound(0);
    rule->observe(0, waiting, 2);  // not until everybody has reported
    EXPECT_EQ(rule->bound(0), before);
    rule->observe(1, waited_for, 2);
  };
  report(0.5, 1);
  EXPECT_EQ(rule->bound(0), 5);
  for (int i = 0; i < 20; ++i) report(0.5, 1);
  EXPECT_EQ(rule->bound(0), 32);
  report(0.7, 0.8);  // neither
  EXPECT_EQ(rule->bound(0), 32);
  // Nobody waits for anybody, though the network takes half of the time.
  for (int i = 0; i < 40; ++i) report(0.5, 0.5);
  EXPECT_EQ(rule->bound(0), 0);
}

// Three steps without a wait and one that took five times as long: half of the time was work.
TEST(Waiting, WeighsReportsByTheirTime) {
  const auto rule = make_consistency({.consistency = Kind::kWaiting, .staleness = 2}, 2);
  for (const double occupancy : {1.0, 1.0, 1.0, 0.2}) rule->observe(0, occupancy, 2);
  rule->observe(1, 1, 2);
  EXPECT_EQ(rule->bound(0), 5);
}

TEST(Waiting, FallsToWhatIsUsedAtOnceAndThenStepByStep) {
  const auto rule = make_consistency({.consistency = Kind::kWaiting, .staleness = 20}, 2);
  const auto all_busy = [&] {
    rule->observe(0, 1, 2);
    rule->observe(1, 1, 2);
  };
  rule->may_read(7, 3, 20, false);
  all_busy();
  EXPECT_EQ(rule->bound(0), 8);
  rule->may_read(8, 3, 8, false);
  all_busy();
  EXPECT_EQ(rule->bound(0), 7);
}

// Three updates of the bounds are computed by hand. Two executions and a bound of 3 are 5 steps. A
// worker whose processor is occupied half as long as the most occupied one can make 10, then 20.
TEST(Adaptive, BoundsOfEachWorkerFollowItsProcessor) {
  const auto rule =
      make_consistency({.consistency = Kind::kAdaptive, .staleness = 3, .executions = 2}, 3);
  const auto report = [&](double first, double second, double third) {
    rule->observe(0, first, 3);
    rule->observe(1, second, 3);
    rule->observe(2, third, 3);
    return std::vector<int64_t>{rule->bound(0), rule->bound(1), rule->bound(2)};
  };
  EXPECT_EQ(report(0.4, 0.8, 0.8), (std::vector<int64_t>{8, 2, 2}));
  EXPECT_EQ(report(0.4, 0.72, 0.8), (std::vector<int64_t>{18, 2, 1}));
  EXPECT_EQ(report(0.8, 0.8, 0.2), (std::vector<int64_t>{17, 1, 10}));
}

// The bounds of workers are part of the state that a replica gets.
TEST(Adaptive, ArchivesItsBounds) {
  const Config config{.consistency = Kind::kAdaptive, .staleness = 3};
  const auto rule = make_consistency(config, 2), copy = make_consistency(config, 2);
  rule->observe(0, 0.4, 2);
  rule->observe(1, 0.8, 2);
  Archive saved;
  rule->archive(saved);
  const std::vector<std::byte> bytes = saved.take();
  Archive read(bytes);
  copy->archive(read);
  EXPECT_TRUE(read.exhausted());
  EXPECT_EQ(copy->bound(0), 8);
  EXPECT_EQ(copy->bound(1), 2);
}

// Updates of 6, 2 and 1 come to clock 4. The parameters move by their mean each time.
TEST(ClockMeans, ThreeUpdatesByHand) {
  ClockMeans means;
  const std::vector<float> updates = {6, 2, 1};
  const std::vector<float> expected = {6, 4, 3};
  float x = 0;
  for (size_t i = 0; i < 3; ++i) {
    const double rate = 0.5 / static_cast<double>(i + 1);  // earlier updates keep their own rates
    const float gradient = updates[i] / static_cast<float>(2 * rate);
    x += static_cast<float>(rate) * means.revise(4, {&gradient, 1}, 2, rate)[0];
    EXPECT_NEAR(x, expected[i], 1e-6);
    if (i > 0) continue;
    Archive saved;
    means.archive(saved);
    const std::vector<std::byte> bytes = saved.take();
    Archive read(bytes);
    means = ClockMeans();
    means.archive(read);
  }
  EXPECT_EQ(means.open(), 1u);
  means.forget_before(5);
  EXPECT_EQ(means.open(), 0u);
}

TEST(Adaptive, ForgivesAfterSomeSteps) {
  const auto rule =
      make_consistency({.consistency = Kind::kAdaptive, .staleness = 3, .executions = 2}, 2);
  EXPECT_FALSE(rule->forgives(1));
  EXPECT_TRUE(rule->forgives(2));
  for (const Kind other : {Kind::kBsp, Kind::kSsp, Kind::kAsp, Kind::kBackup})
    EXPECT_FALSE(make_consistency({.consistency = other}, 2)->forgives(100)) << word_of(other);
}

TEST(Adaptive, LeavesTheSlowestSomeStepsAfterAWait) {
  const auto rule =
      make_consistency({.consistency = Kind::kAdaptive, .staleness = 3, .executions = 2}, 2);
  EXPECT_TRUE(rule->may_read(5, 2, 3, false));
  EXPECT_FALSE(rule->may_read(5, 2, 3, true));
  EXPECT_TRUE(rule->may_read(5, 3, 3, true));
  EXPECT_TRUE(rule->may_read(5, 5, 0, true));  // and never asks for more than there can be
}

TEST(Backup, ClosesWithAllButTheLate) {
  const auto rule = make_consistency({.consistency = Kind::kBackup, .backup = 2}, 8);
  EXPECT_EQ(rule->quorum(8, 8, 100), 6u);
  EXPECT_EQ(rule->quorum(8, 5, 100), 5u);
  EXPECT_EQ(rule->quorum(8, 8, 3), 3u);
}

TEST(Rate, IsDividedByWhatItFollows) {
  EXPECT_EQ(rate_factor({.rate = RateKind::kConstant}, 4, 7, 3), 1);
  EXPECT_EQ(rate_factor({.rate = RateKind::kConstant, .update_weight = 0.5}, 4, 7, 3), 2);
  EXPECT_EQ(rate_factor({.rate = RateKind::kStaleness}, 4, 4, 0), 0.25);
  EXPECT_EQ(rate_factor({.rate = RateKind::kStaleness}, 4, 0.5, 0), 1);
  EXPECT_EQ(rate_factor({.rate = RateKind::kWorker}, 4, 9, 3), 0.25);
}

}  // namespace
}  // namespace tutti::parameter_server

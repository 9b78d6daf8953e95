// The rules of the consistency models by themselves.
#include "strategies/parameter_server/consistency.h"

#include <gtest/gtest.h>

#include <string>

namespace tutti::parameter_server {
namespace {

TEST(Ssp, LetsNobodyReadBeyondTheBound) {
  const auto ssp = make_consistency({.consistency = "ssp", .staleness = 2}, 4);
  EXPECT_TRUE(ssp->may_read(5, 3, ssp->bound(), false));
  EXPECT_FALSE(ssp->may_read(6, 3, ssp->bound(), false));
}

TEST(Adaptive, FollowsTheOccupancyWithinItsLimits) {
  const auto rule = make_consistency({.consistency = "adaptive", .staleness = 2}, 2);
  const auto report = [&](double waiting, double waited_for) {
    rule->observe(0, waiting, 2);
    const int64_t before = rule->bound();
    rule->observe(0, waiting, 2);  // not until everybody has reported
    EXPECT_EQ(rule->bound(), before);
    rule->observe(1, waited_for, 2);
  };
  report(0.5, 1);
  EXPECT_EQ(rule->bound(), 5);
  for (int i = 0; i < 20; ++i) report(0.5, 1);
  EXPECT_EQ(rule->bound(), 32);
  report(0.7, 0.8);  // neither
  EXPECT_EQ(rule->bound(), 32);
  // Nobody waits for anybody, though the network takes half of the time.
  for (int i = 0; i < 40; ++i) report(0.5, 0.5);
  EXPECT_EQ(rule->bound(), 0);
}

// Three steps without a wait and one that took five times as long: half of the time was work.
TEST(Adaptive, WeighsReportsByTheirTime) {
  const auto rule = make_consistency({.consistency = "adaptive", .staleness = 2}, 2);
  for (const double occupancy : {1.0, 1.0, 1.0, 0.2}) rule->observe(0, occupancy, 2);
  rule->observe(1, 1, 2);
  EXPECT_EQ(rule->bound(), 5);
}

TEST(Adaptive, FallsToWhatIsUsedAtOnceAndThenStepByStep) {
  const auto rule = make_consistency({.consistency = "adaptive", .staleness = 20}, 2);
  const auto all_busy = [&] {
    rule->observe(0, 1, 2);
    rule->observe(1, 1, 2);
  };
  rule->may_read(7, 3, 20, false);
  all_busy();
  EXPECT_EQ(rule->bound(), 8);
  rule->may_read(8, 3, 8, false);
  all_busy();
  EXPECT_EQ(rule->bound(), 7);
}

TEST(Adaptive, ForgivesAfterSomeSteps) {
  const auto rule =
      make_consistency({.consistency = "adaptive", .staleness = 3, .executions = 2}, 2);
  EXPECT_FALSE(rule->forgives(1));
  EXPECT_TRUE(rule->forgives(2));
  for (const std::string other : {"bsp", "ssp", "asp", "backup"})
    EXPECT_FALSE(make_consistency({.consistency = other}, 2)->forgives(100)) << other;
}

TEST(Adaptive, LeavesTheSlowestSomeStepsAfterAWait) {
  const auto rule =
      make_consistency({.consistency = "adaptive", .staleness = 3, .executions = 2}, 2);
  EXPECT_TRUE(rule->may_read(5, 2, 3, false));
  EXPECT_FALSE(rule->may_read(5, 2, 3, true));
  EXPECT_TRUE(rule->may_read(5, 3, 3, true));
  EXPECT_TRUE(rule->may_read(5, 5, 0, true));  // and never asks for more than there can be
}

TEST(Backup, ClosesWithAllButTheLate) {
  const auto rule = make_consistency({.consistency = "backup", .backup = 2}, 8);
  EXPECT_EQ(rule->quorum(8, 8, 100), 6u);
  EXPECT_EQ(rule->quorum(8, 5, 100), 5u);
  EXPECT_EQ(rule->quorum(8, 8, 3), 3u);
}

TEST(Rate, IsDividedByWhatItFollows) {
  EXPECT_EQ(rate_factor({.rate = "constant"}, 7, 3), 1);
  EXPECT_EQ(rate_factor({.rate = "staleness"}, 4, 0), 0.25);
  EXPECT_EQ(rate_factor({.rate = "staleness"}, 0.5, 0), 1);
  EXPECT_EQ(rate_factor({.rate = "worker"}, 9, 3), 0.25);
}

}  // namespace
}  // namespace tutti::parameter_server

// Intervals: as wide as the textbook has them, and so that nine of ten further runs lie in them.
#include "testbed/interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/random.h"
#include "testbed/choice.h"

namespace tutti {
namespace {

TEST(Interval, KnowsStudentsT) {
  EXPECT_DOUBLE_EQ(t_of_90_percent(1), 6.314);
  EXPECT_DOUBLE_EQ(t_of_90_percent(2), 2.920);
  EXPECT_NEAR(t_of_90_percent(20), 1.725, 0.005);  // what the formula is off by
  EXPECT_NEAR(t_of_90_percent(100000), kNormalOf90Percent, 1e-4);
  EXPECT_DOUBLE_EQ(t_of_90_percent(0), t_of_90_percent(1));
}

TEST(Interval, SpreadsArePooledByWhatTheyWereFoundFrom) {
  EXPECT_FALSE(spread_of(std::vector<double>{3}));
  EXPECT_FALSE(common_spread({}));
  const Spread one = *spread_of(std::vector<double>{9, 10, 11});
  EXPECT_DOUBLE_EQ(one.relative, 0.1);
  EXPECT_EQ(one.freedom, 2);
  const std::vector<Spread> both = {one, {.relative = 0.4, .freedom = 1}};
  EXPECT_DOUBLE_EQ(common_spread(both)->relative, std::sqrt((2 * 0.01 + 0.16) / 3));
  EXPECT_EQ(common_spread(both)->freedom, 3);
}

// Of 20,000 drawn cases 90 % with a deviation of 0.2 %: 1 % is five of these.
TEST(Interval, HoldsNineOfTenFurtherRuns) {
  for (const int runs : {2, 3, 5}) {
    Random random(7, Stream::kTest, static_cast<uint32_t>(runs));
    constexpr int kCases = 20000;
    int held = 0;
    for (int i = 0; i < kCases; ++i) {
      std::vector<double> values;
      double mean = 0;
      for (int k = 0; k < runs; ++k) {
        values.push_back(100 + 5 * random.normal());
        mean += values.back() / runs;
      }
      const double half = half_width_of_next(*spread_of(values), runs, 0);
      held += std::abs(100 + 5 * random.normal() - mean) <= half * mean;
    }
    EXPECT_NEAR(held / static_cast<double>(kCases), 0.9, 0.01) << runs;
  }
}

// Of predictions that are off by a factor with a spread, the next run lies within the interval: of
// 20,000 drawn cases at least 90 %, for the interval is around the prediction and has to reach as
// far on the other side.
TEST(Interval, OfHistoryHoldsNineOfTenFurtherRuns) {
  EXPECT_FALSE(half_width_of_history(std::vector<double>(4, 0.1)));
  EXPECT_NEAR(*half_width_of_history(std::vector<double>(5, std::log(1.2))), 0.2, 1e-12);
  for (const double bias : {0.0, 0.2}) {
    Random random(11, Stream::kTest, static_cast<uint32_t>(10 * bias));
    constexpr int kCases = 20000;
    int held = 0;
    for (int i = 0; i < kCases; ++i) {
      std::vector<double> ratios;
      for (int k = 0; k < 6; ++k) ratios.push_back(bias + 0.1 * random.normal());
      const double off = std::exp(bias + 0.1 * random.normal()) - 1;
      held += std::abs(off) <= *half_width_of_history(ratios);
    }
    EXPECT_GT(held / static_cast<double>(kCases), 0.9) << bias;
  }
}

// What real runs were off contains the other parts: both together are as wide as the wider.
TEST(Interval, OfHistoryIsNotCountedTwice) {
  Choice choice;
  choice.simulation_error = 0.03;
  const double others = choice.error();
  choice.history_error = others / 2;
  EXPECT_EQ(choice.errors().history, 0);
  EXPECT_DOUBLE_EQ(choice.error(), others);
  choice.history_error = 3 * others;
  EXPECT_DOUBLE_EQ(choice.error(), 3 * others);
  EXPECT_LT(choice.errors().of_a_simulation(), others);
}

// Three runs that were noticed at the same evaluation may still differ by most of what lies between
// two of them.
TEST(Interval, IsNoFinerThanWhatIsNoticed) {
  const Spread none{.relative = 0, .freedom = 2};
  EXPECT_GT(half_width_of_next(none, 3, 0.1), 0.05);
  EXPECT_LT(half_width_of_next(none, 3, 0.1), 0.1);
  EXPECT_EQ(half_width_of_next(none, 3, 0), 0);
}

// A time that may be more than twice as long is not one that may be less than nothing.
TEST(Interval, OfATimeIsPositive) {
  for (const double error : {0.01, 0.1, 0.5, 1.16, 20.0}) {
    const TimeInterval ends = interval_around(12.1, error);
    EXPECT_GT(ends.least, 0) << error;
    EXPECT_DOUBLE_EQ(ends.most, 12.1 * (1 + error));
    EXPECT_DOUBLE_EQ(ends.least * ends.most, 12.1 * 12.1);
    EXPECT_TRUE(ends.holds(12.1));
    EXPECT_FALSE(ends.holds(ends.most * 1.001) || ends.holds(ends.least * 0.999));
    if (!is_lopsided(error)) {
      EXPECT_NEAR(ends.least, 12.1 * (1 - error), 12.1 * 0.04);
    }
  }
}

Choice choice_with(std::vector<double> times_s, const std::string& equivalence) {
  Choice choice;
  choice.equivalence = equivalence;
  choice.times_s = std::move(times_s);
  choice.learning.evaluations = 1e9;
  return choice;
}

// Who ran once takes the spread of those that ran more often; a class has run only once for all of
// its members.
TEST(Interval, OfOneRunHasTheSpreadOfOthers) {
  std::vector<Choice> choices = {choice_with({9, 10, 11}, "sgd"), choice_with({18, 20, 22}, "sgd"),
                                 choice_with({5}, "")};
  EXPECT_EQ(choices[2].errors().seeds, 0);
  lend_spreads(choices);
  EXPECT_DOUBLE_EQ(choices[2].errors().seeds, 2.920 * 0.1 * std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(choices[0].errors().seeds, 2.920 * 0.1 * std::sqrt(4.0 / 3));
}

TEST(Interval, LeavesTheNetworkOutWhereNoneIsReal) {
  Choice choice = choice_with({9, 10, 11}, "");
  choice.simulation_error = 0.3;
  choice.step.compute = 0.5;
  choice.cost_error = 0.2;
  const TimeErrors errors = choice.errors();
  EXPECT_GT(errors.network, 0);
  EXPECT_DOUBLE_EQ(errors.of_a_simulation(), std::hypot(errors.seeds, 0.3, 0.1));
  EXPECT_DOUBLE_EQ(choice.error(), std::hypot(errors.of_a_simulation(), errors.network));
}

}  // namespace
}  // namespace tutti

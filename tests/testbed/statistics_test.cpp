// Statistics with results that are known in closed form.
#include "testbed/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tutti {
namespace {

using Values = std::vector<std::optional<double>>;

TEST(Statistic, IsThePlainMeanOfWhatThereIs) {
  const auto stat = statistic({4.0, std::nullopt, 1.0});
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->mean, 2.5);
  EXPECT_EQ(stat->min, 1);
  EXPECT_EQ(stat->max, 4);
  EXPECT_EQ(stat->values, (Values{4.0, std::nullopt, 1.0}));
  EXPECT_FALSE(statistic({std::nullopt, std::nullopt}));
  EXPECT_FALSE(statistic({}));
}

// From 5 seeds up without the fastest and the slowest; the extremes are always of all.
TEST(OlympicStatistic, LeavesOutTheExtremesFromFive) {
  EXPECT_EQ(olympic_statistic({1.0, 2.0, 3.0, 10.0})->mean, 4);
  const auto five = olympic_statistic({100.0, 2.0, 1.0, 3.0, 4.0});
  EXPECT_EQ(five->mean, 3);
  EXPECT_EQ(five->min, 1);
  EXPECT_EQ(five->max, 100);
  EXPECT_EQ(olympic_statistic({7.0, 7.0, 7.0, 7.0, 7.0, 7.0})->mean, 7);
}

TEST(OlympicStatistic, HasNoMeanWhenOneIsMissing) {
  const auto stat = olympic_statistic({1.0, std::nullopt, 2.0, 3.0, 4.0, 5.0});
  ASSERT_TRUE(stat);
  EXPECT_FALSE(stat->mean);
  EXPECT_EQ(stat->min, 1);
  EXPECT_EQ(stat->max, 5);
  EXPECT_FALSE(olympic_statistic({std::nullopt}));
}

TEST(ValueAt, LiesOnTheLineBetweenMeasurements) {
  const std::vector<CurvePoint> curve = {{10, 0.5}, {20, 0.7}, {40, 0.6}};
  EXPECT_FALSE(value_at(curve, 9.9));
  EXPECT_EQ(value_at(curve, 10), 0.5);
  EXPECT_DOUBLE_EQ(*value_at(curve, 15), 0.6);
  EXPECT_DOUBLE_EQ(*value_at(curve, 30), 0.65);
  EXPECT_EQ(value_at(curve, 40), 0.6);
  EXPECT_FALSE(value_at(curve, 40.1));
  EXPECT_FALSE(value_at({}, 1));
}

TEST(Smoothed, IsTheExponentialMean) {
  // Weight 2 / (3 + 1) = 1/2.
  EXPECT_EQ(smoothed({8, 4, 0}, 3), (std::vector<double>{8, 6, 3}));
  EXPECT_EQ(smoothed({8, 4, 0}, 1), (std::vector<double>{8, 4, 0}));  // weight 1: as it is
  EXPECT_TRUE(smoothed({}, 5).empty());
}

TEST(ConvergenceWindow, IsATenthOfTheStepsAtMostAnEpoch) {
  const ConvergenceRule rule;
  EXPECT_EQ(convergence_window(rule, 1000, 400), 100u);
  EXPECT_EQ(convergence_window(rule, 1000, 30), 30u);
  EXPECT_EQ(convergence_window(rule, 1000, 0), 100u);  // epochs not known
  EXPECT_EQ(convergence_window(rule, 3, 30), 1u);
}

// Falls to 1 and stays there: with weight 1 the step of the last improvement.
TEST(ConvergedAt, IsTheLastImprovementThatIsNotBeatenForAWindow) {
  EXPECT_EQ(converged_at({5, 3, 1, 1, 1, 1}, 1, 0.01), 2u);
  EXPECT_FALSE(converged_at({1, 1}, 1, 0.01));           // it never fell
  EXPECT_FALSE(converged_at({5, 4, 3, 2, 1}, 1, 0.01));  // improves until the end
  EXPECT_FALSE(converged_at({5}, 1, 0.01));              // nothing is left to tell
  EXPECT_FALSE(converged_at({}, 1, 0.01));
}

TEST(ConvergedAt, LessThanTheToleranceIsNoImprovement) {
  EXPECT_EQ(converged_at({1, 0.5, 0.498, 0.497}, 1, 0.01), 1u);
  EXPECT_FALSE(converged_at({1, 0.98, 0.96, 0.94}, 1, 0.01));
  // Small improvements add up to a large one: 3 x 0.5 %, within a window of 4.
  std::vector<double> slow;
  for (int i = 0; i < 100; ++i) slow.push_back(std::pow(0.995, i));
  EXPECT_FALSE(converged_at(slow, 4, 0.01));
}

// A loss that stays level before it falls, and one whose first batch was easy, have not converged
// in their first step.
TEST(ConvergedAt, IsNotWhereTheLossRestsBeforeItFalls) {
  std::vector<double> losses(40, 2.3);
  for (int t = 0; t < 40; ++t) losses.push_back(2.3 * std::pow(0.9, t));
  losses.resize(160, losses.back());
  const auto found = converged_at(losses, 16, 0.01);
  ASSERT_TRUE(found);
  EXPECT_GT(*found, 70u);
  losses.assign(160, 2.3);
  losses[0] = 2.1;
  EXPECT_FALSE(converged_at(losses, 16, 0.01));
  // The loss falls half of the way, stays level, and then falls the other half.
  losses.assign(60, 1.0);
  losses.resize(160, 0.1);
  losses[0] = 2.0;
  ASSERT_TRUE(converged_at(losses, 5, 0.01));
  EXPECT_GT(*converged_at(losses, 5, 0.01), 60u);
}

// loss(t) = 1 + exp(-t/T): s follows it, so with a long window the end of the descent is found
// where s - 1 has fallen to about a hundredth.
TEST(ConvergedAt, FindsTheEndOfAnExponentialDescent) {
  std::vector<double> losses;
  for (int t = 0; t < 400; ++t) losses.push_back(1 + std::exp(-t / 10.0));
  const auto found = converged_at(losses, 20, 0.01);
  ASSERT_TRUE(found);
  const std::vector<double> smooth = smoothed(losses, 20);
  EXPECT_LT(smooth[*found], 1.03);
  EXPECT_GT(smooth[*found], 1.0);
  EXPECT_GT(*found, 20u);
  EXPECT_LT(*found, 80u);
}

}  // namespace
}  // namespace tutti

#include "models/losses.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/error.h"

namespace tutti {
namespace {

TEST(CrossEntropy, MatchesTheDefinition) {
  const std::vector<float> scores = {1, 2, 3, 0, 0, 0};
  const std::vector<int32_t> labels = {2, 0};
  std::vector<float> slopes(6);
  const double z = std::exp(1.0) + std::exp(2.0) + std::exp(3.0);
  const double loss = cross_entropy(scores, labels, 2, slopes);
  EXPECT_NEAR(loss, std::log(z) - 3 + std::log(3.0), 1e-12);
  const double expected[] = {std::exp(1.0) / z, std::exp(2.0) / z, std::exp(3.0) / z - 1,
                             -2.0 / 3,          1.0 / 3,           1.0 / 3};
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(slopes[i], 2 * expected[i], 1e-6);
  EXPECT_EQ(cross_entropy(scores, labels, 1, {}), loss);
}

TEST(CrossEntropy, LargeScoresDoNotOverflowButNanShows) {
  std::vector<float> slopes(2);
  EXPECT_NEAR(cross_entropy(std::vector<float>{1e30F, 0}, std::vector<int32_t>{0}, 1, slopes), 0,
              1e-12);
  EXPECT_EQ(slopes[0], 0);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& scores : {std::vector<float>{nan, 0}, {0, nan}})
    EXPECT_TRUE(std::isnan(cross_entropy(scores, std::vector<int32_t>{0}, 1, slopes)));
}

// Minus infinity for the label: the slopes by themselves would be finite, and hide it in a sum.
TEST(CrossEntropy, AnInfiniteLossHasNoFiniteSlopes) {
  std::vector<float> slopes(4);
  const std::vector<float> scores = {0, 1, -std::numeric_limits<float>::infinity(), 1};
  EXPECT_FALSE(std::isfinite(cross_entropy(scores, std::vector<int32_t>{0, 0}, 1, slopes)));
  for (const float slope : slopes) EXPECT_TRUE(std::isnan(slope));
}

TEST(CrossEntropy, RefusesLabelsOutOfRange) {
  const std::vector<float> scores = {1, 2};
  EXPECT_THROW(cross_entropy(scores, std::vector<int32_t>{2}, 1, {}), DataError);
  EXPECT_THROW(cross_entropy(scores, std::vector<int32_t>{-1}, 1, {}), DataError);
}

TEST(HalfSquaredError, MatchesTheDefinition) {
  std::vector<float> slopes(2);
  EXPECT_EQ(half_squared_error(std::vector<float>{1, 5}, std::vector<float>{3, 4}, 0.5F, slopes),
            2.5);
  EXPECT_EQ(slopes, (std::vector<float>{-1, 0.5F}));
}

TEST(CountCorrect, TakesTheFirstOfEqualScores) {
  const std::vector<float> scores = {1, 1, 0, 0, 1, 2};
  EXPECT_EQ(count_correct(scores, std::vector<int32_t>{0, 2}), 2U);
  EXPECT_EQ(count_correct(scores, std::vector<int32_t>{1, 1}), 0U);
  EXPECT_EQ(count_correct({}, {}), 0U);
}

}  // namespace
}  // namespace tutti

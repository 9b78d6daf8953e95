// Thinning keeps what a reader would miss: ends, order, and the extremes of every stretch.
#include "testbed/thin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random.h"

namespace tutti {
namespace {

std::vector<double> noise(size_t count, uint64_t seed) {
  Random random(seed, Stream::kInit);
  std::vector<double> values(count);
  for (double& value : values) value = random.uniform();
  return values;
}

TEST(Thin, ShortSeriesStayWhole) {
  for (size_t count = 0; count <= 10; ++count)
    EXPECT_EQ(thin(noise(count, 1), 10).size(), count) << count;
}

TEST(Thin, KeepsEndsOrderExtremesAndTheBound) {
  for (const size_t count : {11u, 12u, 13u, 99u, 1000u, 4321u, 100'000u})
    for (const size_t most : {4u, 5u, 7u, 10u, 64u, 1000u}) {
      const std::vector<double> values = noise(count, count + most);
      const std::vector<size_t> kept = thin(values, most);
      EXPECT_LE(kept.size(), std::max(most, size_t{4})) << count << " " << most;
      EXPECT_EQ(kept.front(), 0u);
      EXPECT_EQ(kept.back(), count - 1);
      EXPECT_EQ(std::adjacent_find(kept.begin(), kept.end(), std::greater_equal<>()), kept.end());
      const auto has = [&](auto place) {
        const auto index = static_cast<size_t>(place - values.begin());
        return std::binary_search(kept.begin(), kept.end(), index);
      };
      EXPECT_TRUE(has(std::min_element(values.begin(), values.end()))) << count << " " << most;
      EXPECT_TRUE(has(std::max_element(values.begin(), values.end()))) << count << " " << most;
    }
}

// Between two kept neighbours no dropped value lies outside of what its stretch keeps: a spike of a
// single step stays, wherever it is.
TEST(Thin, ASpikeOfOneStepIsKept) {
  for (size_t at = 0; at < 5000; at += 7) {
    std::vector<double> values(5000, 1.0);
    values[at] = at % 2 ? 9.0 : -9.0;
    const std::vector<size_t> kept = thin(values, 50);
    EXPECT_TRUE(std::find(kept.begin(), kept.end(), at) != kept.end()) << at;
  }
}

TEST(Thin, MissingValuesDoNotHideOthersAndGapsStay) {
  const double kMissing = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> values(1000, kMissing);
  values[501] = 3;
  const std::vector<size_t> kept = thin(values, 20);
  EXPECT_TRUE(std::find(kept.begin(), kept.end(), 501u) != kept.end());
  // The stretches around it have nothing to show and say so.
  EXPECT_GT(
      std::count_if(kept.begin(), kept.end(), [&](size_t i) { return std::isnan(values[i]); }), 5);
}

TEST(Thin, ABoundTooSmallIsABug) { EXPECT_THROW(thin(noise(9, 1), 3), std::logic_error); }

}  // namespace
}  // namespace tutti

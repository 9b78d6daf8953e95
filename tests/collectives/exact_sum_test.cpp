#include "collectives/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/random.h"

namespace tutti {
namespace {

float random_float(Random& random) {
  // Every exponent from which a 24-bit mantissa fits above 2^-80, both signs.
  const int exponent = static_cast<int>(random.below(93)) - 56;
  const double sign = random.below(2) ? -1 : 1;
  return std::ldexp(static_cast<float>(sign * (1 + random.uniform() * 0.999999)), exponent);
}

TEST(ExactSum, KeepsEveryFloatWhoseLastBitIsWorthAtLeastTheResolution) {
  Random random(1, Stream::kTest);
  for (int i = 0; i < 100000; ++i) {
    const float value = random_float(random);
    ASSERT_EQ(std::bit_cast<uint32_t>(rounded(exact(value))),
              std::bit_cast<uint32_t>(value + 0.0f));
  }
  EXPECT_EQ(rounded(exact(0.0f)), 0.0f);
  EXPECT_EQ(rounded(exact(std::ldexp(1.0f, 37))), std::ldexp(1.0f, 37));
}

TEST(ExactSum, CutsOffOnlyWhatLiesBelowTheResolution) {
  EXPECT_EQ(rounded(exact(std::ldexp(1.0f, -80))), std::ldexp(1.0f, -80));
  EXPECT_EQ(rounded(exact(std::ldexp(1.0f, -81))), 0.0f);
  EXPECT_EQ(rounded(exact(std::numeric_limits<float>::denorm_min())), 0.0f);
}

TEST(ExactSum, DoesNotDependOnOrderOrGrouping) {
  Random random(2, Stream::kTest);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<float> values(kMaxExactTerms);
    for (float& value : values) value = random_float(random);
    std::vector<uint32_t> order(values.size());
    std::iota(order.begin(), order.end(), 0u);
    ExactSum forward;
    for (const float value : values) forward = forward + exact(value);
    random.shuffle(order);
    ExactSum groups[3];
    for (const uint32_t i : order) {
      ExactSum& group = groups[random.below(3)];
      group = group + exact(values[i]);
    }
    const float a = rounded(forward), b = rounded(groups[2] + (groups[0] + groups[1]));
    ASSERT_EQ(std::bit_cast<uint32_t>(a), std::bit_cast<uint32_t>(b));
  }
}

TEST(ExactSum, HoldsTheLargestNumberOfLargestValues) {
  const float largest = std::nextafter(std::ldexp(1.0f, 38), 0.0f);
  ExactSum sum;
  for (int64_t i = 0; i < kMaxExactTerms; ++i) sum = sum + exact(largest);
  EXPECT_EQ(rounded(sum), largest * static_cast<float>(kMaxExactTerms));
  for (int64_t i = 0; i < kMaxExactTerms; ++i) sum = sum + exact(-largest);
  EXPECT_EQ(rounded(sum), 0.0f);
}

TEST(ExactSum, ShowsWhatIsNotANumberWhateverIsAdded) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity(), std::ldexp(1.0f, 38)}) {
    ExactSum sum = exact(bad);
    for (int i = 0; i < 100; ++i) sum = exact(1.5f) + sum + exact(bad);
    EXPECT_TRUE(std::isnan(rounded(sum)));
  }
}

}  // namespace
}  // namespace tutti

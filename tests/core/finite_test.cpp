#include "core/finite.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace tutti {
namespace {

// Wherever in a vector register or behind the last full one it lies.
TEST(Finite, FindsWhatIsNoNumberAtEveryPlace) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (size_t size : {size_t{0}, size_t{1}, size_t{7}, size_t{8}, size_t{9}, size_t{67}}) {
    std::vector<float> values(size, -std::numeric_limits<float>::max());
    EXPECT_TRUE(all_finite(values)) << size;
    for (size_t i = 0; i < size; ++i)
      for (const float bad : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN(),
                              -std::numeric_limits<float>::signaling_NaN()}) {
        const float good = values[i];
        values[i] = bad;
        EXPECT_FALSE(all_finite(values)) << bad << " at " << i << " of " << size;
        values[i] = good;
      }
  }
}

TEST(Finite, SmallNumbersAreNumbers) {
  const std::vector<float> values = {0.0F, -0.0F, std::numeric_limits<float>::denorm_min(),
                                     std::numeric_limits<float>::min()};
  EXPECT_TRUE(all_finite(values));
}

}  // namespace
}  // namespace tutti

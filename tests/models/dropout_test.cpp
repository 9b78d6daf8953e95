#include "models/dropout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/random.h"

namespace tutti {
namespace {

std::vector<float> mask_of(const DropoutKey& key, double probability, size_t width) {
  std::vector<float> mask(width, -1);
  fill_dropout_mask(key, probability, mask);
  return mask;
}

// The vectorised generator is core's Philox: word (i mod 32) / 8 of block 8 (i / 32) + i mod 8.
TEST(Dropout, DrawsFromPhilox) {
  const DropoutKey key{.seed = 0x123456789ABCDEF, .step = 7, .sample = 99, .layer = 3};
  const auto mask = mask_of(key, 0.25, 333);
  for (size_t i = 0; i < mask.size(); ++i) {
    const auto block = static_cast<uint32_t>(i / 32 * 8 + i % 8);
    const uint32_t stream = static_cast<uint32_t>(Stream::kDropout) << 24 | 3;
    const auto words = philox({block, 7, 99, stream}, {0x89ABCDEF, 0x1234567});
    EXPECT_EQ(mask[i], words[i % 32 / 8] < 0x40000000U ? 0.0F : 1 / 0.75F) << i;
  }
}

TEST(Dropout, WidthOnlyExtendsAMask) {
  const auto wide = mask_of({.seed = 1}, 0.5, 500);
  for (size_t width : {1U, 31U, 32U, 33U, 499U}) {
    const auto narrow = mask_of({.seed = 1}, 0.5, width);
    EXPECT_TRUE(std::equal(narrow.begin(), narrow.end(), wide.begin()));
  }
}

TEST(Dropout, EveryPartOfTheKeyMatters) {
  const DropoutKey base{.seed = 1, .step = 2, .sample = 3, .layer = 4};
  const auto mask = mask_of(base, 0.5, 256);
  EXPECT_EQ(mask, mask_of(base, 0.5, 256));
  std::vector<DropoutKey> others(6, base);
  others[0].seed = 2;
  others[1].seed = 1 | uint64_t{1} << 40;
  others[2].step = 3;
  others[3].step = 2 | uint64_t{1} << 40;
  others[4].sample = 4;
  others[5].layer = 5;
  for (const DropoutKey& other : others) EXPECT_NE(mask, mask_of(other, 0.5, 256));
}

TEST(Dropout, KeepsTheExpectation) {
  for (double probability : {0.0, 0.1, 0.5, 0.9}) {
    const auto mask = mask_of({.seed = 5}, probability, 100000);
    const double mean = std::accumulate(mask.begin(), mask.end(), 0.0) / 100000;
    // Deviation of the mean: sqrt(p / (1 - p) / n); four of them.
    EXPECT_NEAR(mean, 1, 4 * std::sqrt(probability / (1 - probability) / 100000) + 1e-6);
  }
}

}  // namespace
}  // namespace tutti

#include "core/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

namespace tutti {
namespace {

using Block = std::array<uint32_t, 4>;

// Known answers published with Random123, Salmon et al.'s own implementation.
TEST(Philox, GivesThePublishedAnswers) {
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, IsAFunctionOfSeedStreamAndSequence) {
  Random one(7, Stream::kTest, 3, 4), same(7, Stream::kTest, 3, 4);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(one.next_u64(), same.next_u64());
}

TEST(Random, SequencesDiffer) {
  std::set<uint64_t> firsts;
  for (uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, UINT64_MAX})
    for (Stream stream : {Stream::kInit, Stream::kShuffle, Stream::kTest})
      for (uint32_t a : {0u, 1u, 0xffffffffu})
        for (uint32_t b : {0u, 1u, 0xffffffffu})
          firsts.insert(Random(seed, stream, a, b).next_u64());
  EXPECT_EQ(firsts.size(), 4u * 3 * 3 * 3);
}

TEST(Random, UniformHasTheRightMomentsAndRange) {
  Random random(1, Stream::kTest);
  constexpr int kDraws = 200000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.uniform();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.004);  // six deviations of the mean
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 0.004);
}

TEST(Random, NormalHasTheRightMoments) {
  Random random(2, Stream::kTest);
  constexpr int kDraws = 200000;
  double sum = 0, squares = 0, fourth = 0;
  int beyond = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.normal();
    ASSERT_TRUE(std::isfinite(value));
    sum += value;
    squares += value * value;
    fourth += value * value * value * value;
    beyond += std::abs(value) > 1.959964 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.014);
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
  EXPECT_NEAR(fourth / kDraws, 3, 0.14);
  EXPECT_NEAR(static_cast<double>(beyond) / kDraws, 0.05, 0.003);
}

TEST(Random, BelowIsUniformAtEveryLimit) {
  Random random(3, Stream::kTest);
  for (uint64_t limit : {1u, 2u, 3u, 7u, 10u}) {
    std::vector<int> counts(limit);
    constexpr int kDraws = 50000;
    for (int i = 0; i < kDraws; ++i) ++counts[random.below(limit)];
    const double expected = kDraws / static_cast<double>(limit);
    for (const int count : counts) EXPECT_NEAR(count, expected, 6 * std::sqrt(expected) + 1e-9);
  }
  const uint64_t huge = (uint64_t{1} << 63) + 1;  // where half of the raw draws must be refused
  for (int i = 0; i < 1000; ++i) EXPECT_LT(random.below(huge), huge);
}

TEST(Random, ShuffleIsAPermutation) {
  for (size_t size : {0u, 1u, 2u, 3u, 10u, 1000u}) {
    std::vector<uint32_t> values(size);
    std::iota(values.begin(), values.end(), 0u);
    const std::vector<uint32_t> sorted = values;
    Random(4, Stream::kTest, static_cast<uint32_t>(size)).shuffle(values);
    if (size >= 10) {
      EXPECT_NE(values, sorted);
    }
    std::sort(values.begin(), values.end());
    EXPECT_EQ(values, sorted);
  }
}

TEST(Random, ShuffleGivesEveryOrderEquallyOften) {
  std::vector<int> counts(27);
  Random random(5, Stream::kTest);
  constexpr int kDraws = 60000;
  for (int i = 0; i < kDraws; ++i) {
    std::vector<uint32_t> values = {0, 1, 2};
    random.shuffle(values);
    ++counts[values[0] * 9 + values[1] * 3 + values[2]];
  }
  EXPECT_EQ(std::count_if(counts.begin(), counts.end(), [](int n) { return n > 0; }), 6);
  for (const int count : counts)
    if (count > 0) {
      EXPECT_NEAR(count, kDraws / 6, 600);
    }
}

}  // namespace
}  // namespace tutti

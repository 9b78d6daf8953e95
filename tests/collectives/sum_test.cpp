// One sum that is plain or exact: what was added, in whatever way it came.
#include "collectives/sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "collectives/exact_sum.h"

namespace tutti {
namespace {

using Values = std::vector<float>;

Values values_of(Sum& sum) {
  Values rounded(sum.size());
  const auto values = sum.values(rounded);
  return {values.begin(), values.end()};
}

class SumOfKind : public testing::TestWithParam<SumKind> {
 protected:
  static Sum sum_of(size_t count) { return {GetParam(), count, Arithmetic()}; }
};

TEST_P(SumOfKind, HasWhatWasAdded) {
  Sum sum = sum_of(3);
  EXPECT_TRUE(sum.is_empty());
  EXPECT_EQ(values_of(sum), (Values{0, 0, 0}));
  sum.clear();
  sum.add(Values{1, 2, 3});
  sum.add(Values{0.5, 0.25, -3});
  EXPECT_EQ(values_of(sum), (Values{1.5, 2.25, 0}));
  sum.clear();
  sum.add(Values{4}, 1);
  sum.add(Values{1, 1}, 1);
  EXPECT_EQ(values_of(sum), (Values{0, 5, 1}));
}

TEST_P(SumOfKind, IsMadeOfOthers) {
  Sum a = sum_of(2), b = sum_of(2);
  a.add(Values{1, 2});
  const auto sent = a.bytes();
  const auto landing = b.landing();
  ASSERT_EQ(landing.size(), sent.size());
  std::memcpy(landing.data(), sent.data(), sent.size());
  b.add(Values{10, 10});
  a.add(b);
  EXPECT_EQ(values_of(a), (Values{12, 14}));
  EXPECT_EQ(a.bytes({1, 2}).data(), a.bytes().data() + a.reduction().element_bytes);
  Sum same = Sum::of(GetParam(), a.bytes(), Arithmetic());
  EXPECT_EQ(values_of(same), (Values{12, 14}));
}

TEST_P(SumOfKind, TouchesNothingWhereOnlyCostsCount) {
  const std::span<std::byte> nowhere(reinterpret_cast<std::byte*>(uintptr_t{4096}), 16'000'000);
  Sum sum(GetParam(), nowhere, Arithmetic(false));
  const std::span<float> term(reinterpret_cast<float*>(uintptr_t{4096}), sum.size());
  sum.add(term);
  sum.add(term);
  EXPECT_EQ(sum.bytes().size(), nowhere.size());
  EXPECT_EQ(sum.values(term).size(), sum.size());
}

INSTANTIATE_TEST_SUITE_P(Kinds, SumOfKind, testing::Values(SumKind::kPlain, SumKind::kExact),
                         [](const auto& test) {
                           return test.param == SumKind::kPlain ? "plain" : "exact";
                         });

// The first term is copied: added to zero, a negative zero would lose its sign.
TEST(Sum, KeepsTheBitsOfItsFirstTerm) {
  Sum sum(SumKind::kPlain, 1, Arithmetic());
  sum.add(Values{-0.0F});
  EXPECT_TRUE(std::signbit(values_of(sum)[0]));
}

TEST(Sum, IsExactInWhateverOrder) {
  Sum one(SumKind::kExact, 1, Arithmetic()), other(SumKind::kExact, 1, Arithmetic());
  for (const float term : {1e10F, 1e-10F, -1e10F}) one.add(Values{term});
  for (const float term : {1e-10F, -1e10F, 1e10F}) other.add(Values{term});
  EXPECT_EQ(values_of(one), (Values{1e-10F}));
  EXPECT_EQ(values_of(other), values_of(one));
}

}  // namespace
}  // namespace tutti

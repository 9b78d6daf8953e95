// How two buffers, or several, become one.
#include "collectives/reduction.h"

#include <gtest/gtest.h>

#include <vector>

namespace tutti {
namespace {

std::byte* bytes(std::vector<float>& values) { return reinterpret_cast<std::byte*>(values.data()); }

TEST(Maximum, IsTakenValueByValue) {
  std::vector<float> a = {1, -2, 3, -4}, b = {0, -1, 5, -4};
  kMaximumFloat.combine(bytes(a), bytes(b), a.size());
  EXPECT_EQ(a, (std::vector<float>{1, -1, 5, -4}));
  EXPECT_EQ(b, (std::vector<float>{0, -1, 5, -4})) << "what arrives is not changed";
}

TEST(Maximum, OfSeveralBuffersIsWrittenToAll) {
  std::vector<float> a = {1, -9, 3}, b = {0, -1, 5}, c = {2, -3, 4};
  const std::vector<std::byte*> all = {bytes(a), bytes(b), bytes(c)};
  kMaximumFloat.combine_all(all, a.size());
  EXPECT_EQ(a, (std::vector<float>{2, -1, 5}));
  EXPECT_EQ(b, a);
  EXPECT_EQ(c, a);
}

}  // namespace
}  // namespace tutti

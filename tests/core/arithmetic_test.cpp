// What is left out where only costs count: not a value is read or written then.
#include "core/arithmetic.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace tutti {
namespace {

TEST(Arithmetic, IsDone) {
  const Arithmetic arithmetic;
  std::vector<float> a = {1, 2, 3}, b(3);
  arithmetic.copy(a, std::span(b));
  EXPECT_EQ(b, a);
  arithmetic.add(std::span(b), a);
  EXPECT_EQ(b, (std::vector<float>{2, 4, 6}));
  arithmetic.fill(std::span(b), 7);
  EXPECT_EQ(b, (std::vector<float>{7, 7, 7}));
  EXPECT_EQ(arithmetic.value_of([] { return 1.5; }, 0.0), 1.5);
  EXPECT_TRUE(arithmetic.is_done());
}

TEST(Arithmetic, OrIsLeftOut) {
  // Memory that is not there: who touches it crashes.
  const std::span<float> nowhere(reinterpret_cast<float*>(uintptr_t{4096}), 1'000'000);
  const Arithmetic arithmetic(false);
  arithmetic.copy(nowhere, nowhere);
  arithmetic.add(nowhere, nowhere);
  arithmetic.fill(nowhere, 0);
  arithmetic.perform([&] { nowhere[0] = 1; });
  EXPECT_EQ(arithmetic.value_of([&] { return nowhere[0]; }, 2.0F), 2.0F);
  EXPECT_FALSE(arithmetic.is_done());
}

}  // namespace
}  // namespace tutti

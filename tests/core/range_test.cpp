#include "core/range.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tutti {
namespace {

TEST(Range, PartsCoverTheWholeInOrderAndDifferByAtMostOne) {
  for (size_t total : {0u, 1u, 2u, 5u, 6u, 7u, 16u, 100u, 10007u})
    for (size_t parts : {1u, 2u, 3u, 4u, 7u, 16u, 64u, 101u}) {
      size_t end = 0, least = SIZE_MAX, most = 0;
      for (size_t i = 0; i < parts; ++i) {
        const Range part = part_of(total, parts, i);
        ASSERT_EQ(part.begin, end) << total << " in " << parts << " part " << i;
        ASSERT_LE(part.begin, part.end);
        EXPECT_EQ(part.empty(), part.size() == 0);
        for (size_t at = part.begin; at < part.end; ++at)
          ASSERT_EQ(part_with(total, parts, at), i) << total << " in " << parts << " at " << at;
        end = part.end;
        least = std::min(least, part.size());
        most = std::max(most, part.size());
      }
      EXPECT_EQ(end, total);
      EXPECT_LE(most - least, 1u);
    }
}

TEST(Range, PartsOfHugeTotalsDoNotOverflow) {
  const size_t total = SIZE_MAX;
  EXPECT_EQ(part_of(total, 16, 0).begin, 0u);
  EXPECT_EQ(part_of(total, 16, 15).end, total);
  for (size_t i = 0; i + 1 < 16; ++i)
    EXPECT_EQ(part_of(total, 16, i).end, part_of(total, 16, i + 1).begin);
}

}  // namespace
}  // namespace tutti

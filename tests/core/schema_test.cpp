#include "core/schema.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

const std::vector<std::string_view> kWords = {"allreduce", "solo", "momentum", "lr", "seed"};

TEST(Nearest, FindsTheWordThatWasMeant) {
  EXPECT_EQ(nearest("all_reduce", kWords), "allreduce");
  EXPECT_EQ(nearest("momentun", kWords), "momentum");
  EXPECT_EQ(nearest("sede", kWords), "seed");
  EXPECT_EQ(nearest("Lr", kWords), "lr");
  for (const std::string_view word : kWords) EXPECT_EQ(nearest(word, kWords), word);
}

TEST(Nearest, SaysNothingWhenNoneIsClose) {
  EXPECT_EQ(nearest("xyzzyxyzzy", kWords), "");
  EXPECT_EQ(nearest("anything", {}), "");
}

TEST(Nearest, PrefersTheFirstOfEquallyCloseOnes) { EXPECT_EQ(nearest("lx", {"la", "lb"}), "la"); }

TEST(Nearest, DoesNotSuggestAWordThatSharesNoLetterWithAShortOne) {
  EXPECT_EQ(nearest("zz", {"lr"}), "");
  EXPECT_EQ(nearest("", {"lr"}), "");
}

}  // namespace
}  // namespace tutti

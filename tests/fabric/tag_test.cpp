// Nothing of a tag is cut off without a word.
#include <gtest/gtest.h>

#include <stdexcept>
#include <type_traits>

#include "fabric/tag.h"

namespace tutti {
namespace {

constexpr uint64_t kSteps = Tag::kSteps, kParts = Tag::kParts;

template <uint64_t kPart>
concept IsPart =
    requires { typename std::integral_constant<uint64_t, Tag(Purpose::kUser, 0, kPart).bits()>; };
static_assert(IsPart<0> && IsPart<kParts - 1> && !IsPart<kParts>);

enum class Letter : uint64_t { kFirst = 3, kLast = kParts - 1, kBeyond = kParts };

TEST(Tag, SaysWhatItWasMadeOf) {
  const Tag tag(Purpose::kGradient, 17, Letter::kLast);
  EXPECT_EQ(tag.purpose(), Purpose::kGradient);
  EXPECT_EQ(tag.step(), 17u);
  EXPECT_EQ(tag.part(), kParts - 1);
  EXPECT_EQ(tag.describe(), "gradient, step 17, part 16383");
  EXPECT_EQ(Tag::from_bits(tag.bits()), tag);
  EXPECT_EQ(Tag(Purpose::kGradient, Tag::wrapped(17), 3),
            Tag(Purpose::kGradient, 17, Letter::kFirst));
}

TEST(Tag, RefusesAPartThatDoesNotFit) {
  uint64_t part = kParts;
  EXPECT_THROW(Tag(Purpose::kUser, 0, part), std::logic_error);
  EXPECT_THROW(Tag(Purpose::kUser, 0, Letter::kBeyond), std::logic_error);
  EXPECT_THROW(Tag(Purpose::kUser, 0, ~uint64_t{0}), std::logic_error);
  EXPECT_NO_THROW(Tag(Purpose::kUser, 0, --part));
}

// The counts of long runs go on; those that are under way together stay apart, and neither purpose
// nor part takes part in it.
TEST(Tag, StepsBeginAgain) {
  EXPECT_EQ(Tag(Purpose::kUser, Tag::wrapped(kSteps), 5), Tag(Purpose::kUser, 0, 5));
  EXPECT_EQ(Tag(Purpose::kUser, Tag::wrapped(3 * static_cast<int64_t>(kSteps) + 9), 5),
            Tag(Purpose::kUser, 9, 5));
  const Tag last(Purpose::kUser, Tag::wrapped(kSteps - 1), 5);
  EXPECT_EQ(last.step(), kSteps - 1);
  for (uint64_t ahead = 1; ahead < 1000; ++ahead) {
    const Tag next(Purpose::kUser, Tag::wrapped(kSteps - 1 + ahead), 5);
    EXPECT_NE(next, last);
    EXPECT_EQ(next.purpose(), Purpose::kUser);
    EXPECT_EQ(next.part(), 5u);
  }
}

}  // namespace
}  // namespace tutti

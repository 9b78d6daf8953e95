// The queues of posted receives and unexpected messages, by themselves.
#include <gtest/gtest.h>

#include "fabric/virtual/matching.h"

namespace tutti::simulation {
namespace {

const Tag kTag(Purpose::kUser, 1);
const Tag kOther(Purpose::kUser, 2);

TEST(VirtualMatching, TakesMessagesInTheOrderOfArrival) {
  Matching matching;
  EXPECT_EQ(matching.arrive(kTag, 1, 11), 0u);
  EXPECT_EQ(matching.arrive(kTag, 2, 12), 0u);
  EXPECT_EQ(matching.arrive(kTag, 1, 13), 0u);
  EXPECT_EQ(matching.post(kTag, 2, 21), 12u);
  EXPECT_EQ(matching.post(kTag, kAnyRank, 22), 11u);
  EXPECT_EQ(matching.post(kTag, kAnyRank, 23), 13u);
  EXPECT_EQ(matching.post(kTag, kAnyRank, 24), 0u);
}

TEST(VirtualMatching, GivesToReceivesInTheOrderPosted) {
  Matching matching;
  EXPECT_EQ(matching.post(kTag, 1, 21), 0u);
  EXPECT_EQ(matching.post(kTag, kAnyRank, 22), 0u);
  EXPECT_EQ(matching.post(kOther, kAnyRank, 23), 0u);
  EXPECT_EQ(matching.arrive(kTag, 2, 11), 22u);
  EXPECT_EQ(matching.arrive(kTag, 1, 12), 21u);
  EXPECT_EQ(matching.arrive(kTag, 1, 13), 0u);
  EXPECT_EQ(matching.arrive(kOther, 5, 14), 23u);
}

TEST(VirtualMatching, GivesBackToTheOldPlace) {
  Matching matching;
  matching.arrive(kTag, 1, 11);
  matching.arrive(kTag, 1, 12);
  EXPECT_EQ(matching.post(kTag, 1, 21), 11u);
  EXPECT_EQ(matching.arrive_again(kTag, 1, 11), 0u);  // its receive was cancelled
  EXPECT_EQ(matching.post(kTag, 1, 22), 11u);
  EXPECT_EQ(matching.post(kTag, 1, 23), 12u);

  matching.post(kTag, 1, 31);
  matching.post(kTag, 1, 32);
  EXPECT_EQ(matching.arrive(kTag, 1, 41), 31u);
  EXPECT_EQ(matching.post_again(kTag, 1, 31), 0u);  // its send was cancelled
  EXPECT_EQ(matching.arrive(kTag, 1, 42), 31u);
  EXPECT_EQ(matching.arrive(kTag, 1, 43), 32u);
}

TEST(VirtualMatching, WithdrawsBoth) {
  Matching matching;
  matching.arrive(kTag, 1, 11);
  matching.post(kOther, 1, 21);
  EXPECT_FALSE(matching.withdraw_message(kTag, 99));
  EXPECT_TRUE(matching.withdraw_message(kTag, 11));
  EXPECT_FALSE(matching.withdraw_message(kTag, 11));
  EXPECT_TRUE(matching.withdraw_receive(kOther, 21));
  EXPECT_EQ(matching.arrive(kOther, 1, 12), 0u);
  EXPECT_EQ(matching.post(kTag, 1, 22), 0u);
}

}  // namespace
}  // namespace tutti::simulation

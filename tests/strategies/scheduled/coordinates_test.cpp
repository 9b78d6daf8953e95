// Which coordinates a round updates.
#include "strategies/scheduled/coordinates.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace tutti {
namespace {

// Groups of four neighbours conflict, nobody else.
double in_groups(uint32_t a, uint32_t b) { return a / 4 == b / 4 ? 0.9 : 0.05; }

CoordinateSchedule schedule(CoordinateOrder order, size_t coordinates, size_t parallel) {
  return {order, coordinates, parallel, 0.5, 3, in_groups};
}

void expect_distinct(const std::vector<uint32_t>& picked, size_t coordinates, size_t parallel) {
  EXPECT_GE(picked.size(), 1u);
  EXPECT_LE(picked.size(), parallel);
  EXPECT_EQ(std::set<uint32_t>(picked.begin(), picked.end()).size(), picked.size());
  for (const uint32_t coordinate : picked) EXPECT_LT(coordinate, coordinates);
}

TEST(CoordinateSchedule, PicksDistinctOnesForEverySize) {
  for (const CoordinateOrder order :
       {CoordinateOrder::kPriority, CoordinateOrder::kRandom, CoordinateOrder::kCyclic})
    for (const size_t coordinates : {1u, 2u, 7u, 64u})
      for (const size_t parallel : {1u, 3u, 64u, 100u}) {
        CoordinateSchedule plan = schedule(order, coordinates, parallel);
        for (uint64_t round = 0; round < 20; ++round) {
          const auto picked = plan.pick(round);
          expect_distinct(picked, coordinates, parallel);
          for (const uint32_t coordinate : picked) plan.changed(coordinate, 1.0 / (1 + coordinate));
        }
      }
}

TEST(CoordinateSchedule, PriorityTakesNoTwoThatConflict) {
  CoordinateSchedule plan = schedule(CoordinateOrder::kPriority, 64, 16);
  for (uint64_t round = 0; round < 50; ++round) {
    const auto picked = plan.pick(round);
    for (const uint32_t a : picked) {
      for (const uint32_t b : picked) EXPECT_TRUE(a == b || in_groups(a, b) < 0.5);
      plan.changed(a, 1);
    }
  }
  // Shotgun does not look.
  CoordinateSchedule random = schedule(CoordinateOrder::kRandom, 64, 16);
  bool conflict = false;
  for (uint64_t round = 0; round < 50; ++round) {
    const auto picked = random.pick(round);
    EXPECT_EQ(picked.size(), 16u);
    for (const uint32_t a : picked)
      for (const uint32_t b : picked) conflict = conflict || (a != b && in_groups(a, b) >= 0.5);
  }
  EXPECT_TRUE(conflict);
}

// One coordinate keeps changing 20 times as much as the others: its turn comes more than twice as
// often (waits grow with the third root of that, 2.7), and the others are not forgotten.
TEST(CoordinateSchedule, PriorityFollowsTheChanges) {
  CoordinateSchedule plan(CoordinateOrder::kPriority, 40, 4, 1, 1, in_groups);
  std::map<uint32_t, int> times;
  constexpr int kRounds = 400;
  for (int round = 0; round < kRounds; ++round)
    for (const uint32_t coordinate : plan.pick(static_cast<uint64_t>(round))) {
      ++times[coordinate];
      plan.changed(coordinate, coordinate == 17 ? 20 : 1);
    }
  EXPECT_EQ(times.size(), 40u) << "every one has its turn";
  for (const auto& [coordinate, count] : times)
    if (coordinate != 17) {
      EXPECT_LT(2 * count, times[17]) << coordinate;
    }
}

TEST(CoordinateSchedule, CyclicTakesAllInTurn) {
  CoordinateSchedule plan = schedule(CoordinateOrder::kCyclic, 5, 2);
  EXPECT_EQ(plan.pick(0), (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(plan.pick(1), (std::vector<uint32_t>{2, 3}));
  EXPECT_EQ(plan.pick(2), (std::vector<uint32_t>{4, 0}));
}

TEST(CoordinateSchedule, DependsOnSeedAndRoundAlone) {
  CoordinateSchedule a = schedule(CoordinateOrder::kRandom, 64, 8);
  CoordinateSchedule b = schedule(CoordinateOrder::kRandom, 64, 8);
  CoordinateSchedule other(CoordinateOrder::kRandom, 64, 8, 0.5, 4, in_groups);
  EXPECT_EQ(a.pick(5), b.pick(5));
  EXPECT_NE(a.pick(5), a.pick(6));
  EXPECT_NE(a.pick(5), other.pick(5));
}

}  // namespace
}  // namespace tutti

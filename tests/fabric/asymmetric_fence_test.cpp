// The litmus test of store buffering: two that each publish and then look cannot both miss the
// other, although only one of them fences.
#include "fabric/process/asymmetric_fence.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

namespace tutti::process {
namespace {

struct alignas(64) Word {
  std::atomic<int> value{0};
};

// How often neither saw the other's value.
int missed_by_both(const AsymmetricFence& fence, int rounds) {
  Word published, asleep, seen_asleep, seen_published, turn, ready;
  // Lines that the other core owns: while they are fetched, what is published after them waits.
  std::array<Word, 16> burden;
  const auto relaxed = std::memory_order_relaxed;
  std::thread publisher([&] {
    for (int round = 1; round <= rounds; ++round) {
      while (turn.value.load() < round) {
      }
      for (Word& word : burden) word.value.store(round, relaxed);
      published.value.store(round, relaxed);
      fence.light();
      seen_asleep.value.store(asleep.value.load(relaxed), relaxed);
      ready.value.store(round);
    }
  });
  int missed = 0;
  for (int round = 1; round <= rounds; ++round) {
    turn.value.store(round, std::memory_order_release);
    // For as long as the news takes to the other core, more or less: then both publish at once.
    for (int i = 0; i < round % 128; ++i) static_cast<void>(turn.value.load(relaxed));
    asleep.value.store(round, relaxed);
    EXPECT_TRUE(fence.heavy());
    const int seen = published.value.load(relaxed);
    while (ready.value.load() < round) {
    }
    for (Word& word : burden) word.value.store(-round, relaxed);
    missed += seen < round && seen_asleep.value.load(relaxed) < round;
  }
  publisher.join();
  return missed;
}

TEST(AsymmetricFence, NotBothMissTheOther) {
  const AsymmetricFence fence;
  EXPECT_EQ(missed_by_both(fence, 20'000), 0);
}

}  // namespace
}  // namespace tutti::process

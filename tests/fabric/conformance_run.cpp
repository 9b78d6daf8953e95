// Conformance: outcomes, interruption and shared windows.

#include "core/error.h"
#include "fabric/outcome.h"
#include "tests/fabric/conformance.h"
#include "tests/support/stop_later.h"

namespace tutti {
namespace {

TEST(Conformance, MapsWhatTheBodyThrows) {
  const auto outcomes = run_nodes(8, [](Node& node) -> std::string {
    switch (node.endpoint().rank()) {
      case 0:
        throw DivergedError("the loss is NaN");
      case 1:
        throw FabricError(FabricError::Kind::kPeerLost, 5, "lost rank 5");
      case 2:
        throw FabricError(FabricError::Kind::kTimedOut, 5, "rank 5 is slow");
      case 3:
        throw ConfigError("task.model", "no such model");
      case 4:
        throw DataError("truncated");
      case 5:
        throw std::runtime_error("a bug");
      case 6:
        throw InterruptedError();
      default:
        return "done";
    }
  });
  ASSERT_EQ(outcomes.size(), 8u);
  const int codes[] = {3, 4, 4, 2, 2, 1, 130, 0};
  for (size_t rank = 0; rank < 8; ++rank) EXPECT_EQ(outcomes[rank].exit_code, codes[rank]) << rank;
  for (size_t rank = 0; rank < 6; ++rank)
    EXPECT_EQ(outcomes[rank].kind, NodeOutcome::Kind::kFailed) << rank;
  EXPECT_EQ(outcomes[6].kind, NodeOutcome::Kind::kInterrupted);
  EXPECT_EQ(outcomes[7].kind, NodeOutcome::Kind::kDone);
  EXPECT_EQ(outcomes[7].result, "done");
  EXPECT_EQ(outcomes[0].error, "the loss is NaN");
  EXPECT_EQ(outcomes[1].lost_peer, 5);
  EXPECT_EQ(outcomes[2].lost_peer, kAnyRank);
}

TEST(Conformance, ResultsAreAnyBytes) {
  const auto outcomes = run_nodes(2, [](Node& node) -> std::string {
    const auto bytes = pattern(5'000'000, static_cast<uint64_t>(node.endpoint().rank()));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  });
  for (size_t rank = 0; rank < 2; ++rank) {
    const auto bytes = pattern(5'000'000, rank);
    ASSERT_EQ(outcomes[rank].result.size(), bytes.size());
    EXPECT_EQ(std::memcmp(outcomes[rank].result.data(), bytes.data(), bytes.size()), 0);
  }
}

TEST(Conformance, StopReachesNodesInEveryCall) {
  const testing_support::StopLater stop(300);
  const auto outcomes = fabric_under_test().make(4, {})->run(
      [](Node& node) -> std::string {
        std::vector<std::byte> buffer(8);
        const auto large = pattern(kWaits, 1);
        switch (node.endpoint().rank()) {
          case 0:
            while (true) node.clock().sleep(0.01);
          case 1: {
            Handle handle = node.endpoint().receive(0, user_tag(1), buffer);
            return fmt::format("{}", static_cast<int>(node.endpoint().wait(handle, 1e9).state));
          }
          case 2: {
            Handle handle = node.endpoint().send(0, user_tag(2), large);
            return fmt::format("{}", static_cast<int>(node.endpoint().wait(handle, 1e9).state));
          }
          default:
            while (true) node.clock().charge({1e6, 0});
        }
      },
      stop.requested());
  for (const NodeOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.kind, NodeOutcome::Kind::kInterrupted) << outcome.result << outcome.error;
    EXPECT_EQ(outcome.exit_code, kExitInterrupted);
  }
}

TEST(Conformance, WindowsAreShared) {
  const auto outcomes = run_nodes(4, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    Window* window = endpoint.open_window(100'000, kLong_s);
    if (!window) return kNoWindow;
    const Rank self = endpoint.rank();
    IN_BODY(window->of(self).size() >= 100'000);
    for (uint64_t round = 1; round <= 100; ++round) {
      const auto mine = pattern(1000, static_cast<uint64_t>(self) + round);
      std::memcpy(window->of(self).data() + 99'000, mine.data(), mine.size());
      window->post(3, round);
      for (Rank rank = 0; rank < 4; ++rank) {
        const Completion completion = window->await(rank, 3, round, kLong_s);
        IN_BODY(completion.state == State::kDone);
        IN_BODY(reinterpret_cast<uintptr_t>(window->of(rank).data()) % 64 == 0);
        const auto theirs = pattern(1000, static_cast<uint64_t>(rank) + round);
        IN_BODY(std::memcmp(window->of(rank).data() + 99'000, theirs.data(), 1000) == 0);
      }
      window->post(5, round);  // all have read: the memory may change
      for (Rank rank = 0; rank < 4; ++rank)
        IN_BODY(window->await(rank, 5, round, kLong_s).state == State::kDone);
    }
    IN_BODY(window->await((self + 1) % 4, 7, 1, kShort_s).state == State::kTimedOut);
    // A second window is another one.
    Window* second = endpoint.open_window(64, kLong_s);
    IN_BODY(second && second != window);
    IN_BODY(second->of(self).data() != window->of(self).data());
    IN_BODY(second->await((self + 1) % 4, 3, 1, kShort_s).state == State::kTimedOut);
    return kOk;
  });
  if (!expect_windows(outcomes)) return;
  for (Rank rank = 0; rank < 4; ++rank) expect_ok(outcomes, rank);
}

// The peer posts around the time after which a waiting process goes to sleep, on both sides of it.
// Who misses the wake-up looks again after ten seconds by itself; that is too late an answer.
TEST(Conformance, WhoSleepsAtAWindowIsWoken) {
  const auto outcomes = run_nodes(2, [](Node& node) -> std::string {
    Window* window = node.endpoint().open_window(64, kLong_s);
    if (!window) return kNoWindow;
    for (uint64_t round = 1; round <= 200; ++round) {
      if (node.endpoint().rank() == 0) {
        node.clock().sleep(1.2e-3 + 4e-6 * static_cast<double>(round));
        window->post(0, round);
        IN_BODY(window->await(1, 0, round, 5).state == State::kDone);
      } else {
        IN_BODY(window->await(0, 0, round, kLong_s).state == State::kDone);
        window->post(0, round);
      }
    }
    return kOk;
  });
  if (!expect_windows(outcomes)) return;
  for (Rank rank = 0; rank < 2; ++rank) expect_ok(outcomes, rank);
}

TEST(Conformance, LossEndsWaitingAtAWindow) {
  const auto outcomes = run_nodes(3, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    Window* window = endpoint.open_window(64, kLong_s);
    if (!window) return kNoWindow;
    if (endpoint.rank() == 1) {
      window->post(0, 5);
      die_soon(node, {0, 2});
    }
    const double death_s = hear_of_death(node, 1);
    if (endpoint.rank() == 2) node.membership().end_waits_on_any_loss(true);
    const Rank awaited = endpoint.rank() == 0 ? 1 : 0;
    const Completion completion = window->await(awaited, 0, 6, kLong_s);
    IN_BODY(in_time(node, death_s));
    IN_BODY(completion.state == State::kPeerLost && completion.peer == 1);
    IN_BODY(window->await(1, 0, 5, kLong_s).state == State::kDone);  // it had posted that
    return kOk;
  });
  if (!expect_windows(outcomes)) return;
  expect_lost(outcomes, 1);
  expect_ok(outcomes, 0);
  expect_ok(outcomes, 2);
}

}  // namespace
}  // namespace tutti

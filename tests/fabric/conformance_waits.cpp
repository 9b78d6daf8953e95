// Conformance: deadlines, cancelling, testing, the clock.
#include <ctime>
#include <limits>

#include "tests/fabric/conformance.h"

namespace tutti {
namespace {

TEST(Conformance, DeadlinesPassAndLeaveTheHandle) {
  run_all_ok(2, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    const auto large = pattern(kWaits, 1);
    if (endpoint.rank() == 0) {
      std::vector<std::byte> buffer(8);
      Handle handle = endpoint.receive(1, user_tag(1), buffer);
      const double before_s = node.clock().now();
      IN_BODY(endpoint.wait(handle, kShort_s).state == State::kTimedOut);
      IN_BODY(node.clock().now() - before_s >= kShort_s * 0.99);
      IN_BODY(handle.pending());
      IN_BODY(endpoint.wait(handle, 0).state == State::kTimedOut);
      IN_BODY(tell(node, 1, 1));
      IN_BODY(endpoint.wait(handle, kLong_s).state == State::kDone);
      IN_BODY(!handle.pending());
      // A send that nobody receives yet.
      Handle sent = endpoint.send(1, user_tag(2), large);
      const State early = endpoint.wait(sent, kShort_s).state;
      IN_BODY(early == State::kTimedOut || early == State::kDone);
      IN_BODY(tell(node, 1, 2));
      if (early == State::kTimedOut) IN_BODY(endpoint.wait(sent, kLong_s).state == State::kDone);
      return kOk;
    }
    IN_BODY(hear(node, 0, 1));
    IN_BODY(send_number(node, 0, user_tag(1), 1));
    IN_BODY(hear(node, 0, 2));
    IN_BODY(receive_exactly(node, 0, user_tag(2), large));
    return kOk;
  });
}

TEST(Conformance, ACancelledReceiveTakesNothing) {
  run_all_ok(2, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    if (endpoint.rank() == 0) {
      IN_BODY(hear(node, 1, 1));
      IN_BODY(send_number(node, 1, user_tag(1), 99));
      return kOk;
    }
    uint64_t cancelled = 0, destroyed = 0;
    Handle handle =
        endpoint.receive(0, user_tag(1), std::as_writable_bytes(std::span(&cancelled, 1)));
    IN_BODY(endpoint.cancel(handle).state == State::kCancelled);
    IN_BODY(!handle.pending());
    {
      const Handle scoped =
          endpoint.receive(kAnyRank, user_tag(1), std::as_writable_bytes(std::span(&destroyed, 1)));
    }
    IN_BODY(tell(node, 0, 1));
    IN_BODY(receive_number(node, 0, user_tag(1), 99));
    IN_BODY(cancelled == 0 && destroyed == 0);
    return kOk;
  });
}

TEST(Conformance, ACancelledLargeSendIsNotReceived) {
  run_all_ok(2, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    if (endpoint.rank() == 0) {
      std::vector<std::byte> first = pattern(kWaits, 1);
      Handle handle = endpoint.send(1, user_tag(1), first);
      const State state = endpoint.cancel(handle).state;
      IN_BODY(state == State::kCancelled);
      std::fill(first.begin(), first.end(), std::byte{0});  // the buffer is free
      IN_BODY(tell(node, 1, 1));
      IN_BODY(send_all(node, 1, user_tag(1), pattern(200'000, 2)));
      return kOk;
    }
    IN_BODY(hear(node, 0, 1));
    IN_BODY(receive_exactly(node, 0, user_tag(1), pattern(200'000, 2)));
    return kOk;
  });
}

// Whenever it is called back: the receiver gets all of it or nothing, and the next one in its
// place.
TEST(Conformance, ACancelledSendIsNeverHalfReceived) {
  run_all_ok(2, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    const double delays_s[] = {0, 1e-4, 1e-3, 2e-3, 4e-3, 8e-3, 16e-3};
    for (const double& delay_s : delays_s) {
      const auto round = static_cast<uint64_t>(&delay_s - delays_s);
      std::vector<std::byte> first = pattern(kWaits, 1), second = pattern(kWaits, 2);
      if (endpoint.rank() == 0) {
        IN_BODY(hear(node, 1, round));
        Handle handle = endpoint.send(1, user_tag(1), first);
        const State waited = endpoint.wait(handle, delay_s).state;
        const State state = waited == State::kTimedOut ? endpoint.cancel(handle).state : waited;
        IN_BODY(state == State::kDone || state == State::kCancelled);
        std::fill(first.begin(), first.end(), std::byte{0xee});
        IN_BODY(send_number(node, 1, user_tag(2), state == State::kDone ? 1 : 0));
        IN_BODY(send_all(node, 1, user_tag(1), second));
        continue;
      }
      std::vector<std::byte> buffer(kWaits);
      Handle handle = endpoint.receive(0, user_tag(1), buffer);
      IN_BODY(tell(node, 0, round));
      IN_BODY(endpoint.wait(handle, kLong_s).state == State::kDone);
      uint64_t sent = 0;
      Handle number = endpoint.receive(0, user_tag(2), std::as_writable_bytes(std::span(&sent, 1)));
      IN_BODY(endpoint.wait(number, kLong_s).state == State::kDone);
      IN_BODY(buffer == (sent ? first : second));
      if (sent) IN_BODY(receive_exactly(node, 0, user_tag(1), second));
    }
    return kOk;
  });
}

TEST(Conformance, CancelTellsHowItHadEnded) {
  run_all_ok(1, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    uint64_t value = 5, got = 0;
    Handle sent = endpoint.send(0, user_tag(1), std::as_bytes(std::span(&value, 1)));
    Handle received = endpoint.receive(0, user_tag(1), std::as_writable_bytes(std::span(&got, 1)));
    node.clock().sleep(0.05);
    IN_BODY(endpoint.cancel(sent).state == State::kDone);
    const State state = endpoint.cancel(received).state;
    IN_BODY(state == State::kDone || state == State::kCancelled);
    IN_BODY(state == State::kDone ? got == 5 : got == 0);
    return kOk;
  });
}

TEST(Conformance, TestNeverBlocksAndEndsTheHandle) {
  run_all_ok(2, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    if (endpoint.rank() == 0) {
      uint64_t value = 0;
      Handle handle =
          endpoint.receive(1, user_tag(1), std::as_writable_bytes(std::span(&value, 1)));
      IN_BODY(!endpoint.test(handle));
      IN_BODY(handle.pending());
      IN_BODY(tell(node, 1, 1));
      const double end_s = node.clock().now() + kLong_s;
      std::optional<Completion> completion;
      while (!completion && node.clock().now() < end_s) completion = endpoint.test(handle);
      IN_BODY(completion && completion->state == State::kDone && completion->bytes == 8);
      IN_BODY(value == 6 && !handle.pending());
      return kOk;
    }
    IN_BODY(hear(node, 0, 1));
    IN_BODY(send_number(node, 0, user_tag(1), 6));
    return kOk;
  });
}

TEST(Conformance, WaitsForAnyOfSeveral) {
  run_all_ok(3, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    if (endpoint.rank() != 0) {
      IN_BODY(hear(node, 0, 1));
      IN_BODY(send_number(node, 0, user_tag(1), static_cast<uint64_t>(endpoint.rank())));
      return kOk;
    }
    std::vector<uint64_t> values(3, 0);
    std::vector<Handle> handles(4);  // the first and the last are not pending: skipped
    for (const Rank peer : {1, 2})
      handles[static_cast<size_t>(peer)] = endpoint.receive(
          peer, user_tag(1),
          std::as_writable_bytes(std::span(&values[static_cast<size_t>(peer)], 1)));
    auto [index, completion] = endpoint.wait_any(handles, kShort_s);
    IN_BODY(index == handles.size() && completion.state == State::kTimedOut);
    IN_BODY(handles[1].pending() && handles[2].pending());

    for (const Rank peer : {2, 1}) {
      IN_BODY(tell(node, peer, 1));
      std::tie(index, completion) = endpoint.wait_any(handles, kLong_s);
      IN_BODY(index == static_cast<size_t>(peer));
      IN_BODY(completion.state == State::kDone && completion.peer == peer);
      IN_BODY(!handles[index].pending() && values[index] == index);
    }
    return kOk;
  });
}

// With nothing to wait for there is no reason to wait, nor is it a deadlock.
TEST(Conformance, WaitingForNoneOfSeveralEndsAtOnce) {
  run_all_ok(2, [](Node& node) -> std::string {
    std::vector<Handle> handles(3);
    for (const double timeout_s : {0.0, kLong_s, std::numeric_limits<double>::infinity()})
      for (const size_t count : {size_t{0}, handles.size()}) {
        const double before_s = node.clock().now();
        const auto [index, completion] =
            node.endpoint().wait_any({handles.data(), count}, timeout_s);
        IN_BODY(index == count && completion.state == State::kTimedOut);
        IN_BODY(completion.peer == kAnyRank);
        IN_BODY(node.clock().now() - before_s < kLong_s / 2);
      }
    return kOk;
  });
}

TEST(Conformance, TheClockGoesOn) {
  run_all_ok(2, [](Node& node) -> std::string {
    Clock& clock = node.clock();
    const double before_s = clock.now();
    clock.sleep(0.05);
    const double after_s = clock.now();
    IN_BODY(before_s >= 0 && after_s - before_s >= 0.05 * 0.99);
    clock.charge({1e6, 1e6});
    IN_BODY(clock.now() >= after_s);
    IN_BODY(clock.load() >= 0 && clock.load() <= 1.001);
    IN_BODY(clock.busy_s() >= 0);
    return kOk;
  });
}

// Or else "uses no processor" below would say nothing.
TEST(Conformance, WhoComputesIsBusy) {
  run_all_ok(2, [](Node& node) -> std::string {
    const double before_s = node.clock().busy_s();
    if (node.clock().simulated()) {
      node.clock().charge({1e12, 0});  // seconds on any node
    } else {
      const std::clock_t begin = std::clock();
      while (std::clock() - begin < CLOCKS_PER_SEC / 5) {
      }
    }
    const double busy_s = node.clock().busy_s() - before_s;
    IN_BODY(busy_s > 0.19 && node.clock().load() > 0);
    return kOk;
  });
}

TEST(Conformance, AnIdleNodeUsesNoProcessor) {
  run_all_ok(2, [](Node& node) -> std::string {
    const double before_s = node.clock().busy_s();
    if (node.endpoint().rank() == 0) {
      IN_BODY(hear(node, 1, 1));
    } else {
      node.clock().sleep(1);
      IN_BODY(tell(node, 0, 1));
    }
    IN_BODY(node.clock().busy_s() - before_s < 0.05);
    return kOk;
  });
}

TEST(Conformance, KnowsRanksAndRoles) {
  ConformanceOptions options;
  options.roles = {"worker", "worker", "server"};
  run_all_ok(
      3,
      [](Node& node) -> std::string {
        Endpoint& endpoint = node.endpoint();
        IN_BODY(endpoint.size() == 3);
        IN_BODY(endpoint.rank() >= 0 && endpoint.rank() < 3);
        IN_BODY(endpoint.role(0) == "worker" && endpoint.role(2) == "server");
        IN_BODY(endpoint.role(endpoint.rank()) == (endpoint.rank() == 2 ? "server" : "worker"));
        IN_BODY(node.timeout_s() == 60);
        for (Rank rank = 0; rank < 3; ++rank) {
          IN_BODY(node.membership().alive(rank));
          IN_BODY(node.membership().incarnation(rank) == 0);
        }
        IN_BODY(!node.membership().next_event());
        return kOk;
      },
      options);
}

}  // namespace
}  // namespace tutti

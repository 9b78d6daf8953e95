// Conformance: loss of a peer at every phase of a transfer.
#include <sys/mman.h>
#include <sys/resource.h>

#include <csignal>

#include "core/error.h"
#include "fabric/exchange.h"
#include "tests/fabric/conformance.h"

namespace tutti {
namespace {

void kill(Node& node) { fabric_under_test().kill(node); }

// Rank 0 survives, rank 1 does not.
void run_with_victim(int nodes, const Fabric::Body& body) {
  const auto outcomes = run_nodes(nodes, body);
  for (Rank rank = 0; rank < nodes; ++rank)
    rank == 1 ? expect_lost(outcomes, 1) : expect_ok(outcomes, rank);
}

TEST(Conformance, LossEndsAReceiveThatWaits) {
  run_with_victim(2, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    if (endpoint.rank() == 1) die_soon(node, {0});
    const double death_s = hear_of_death(node, 1);
    std::vector<std::byte> buffer(8);
    Handle handle = endpoint.receive(1, user_tag(1), buffer);
    const Completion completion = endpoint.wait(handle, kLong_s);
    IN_BODY(in_time(node, death_s));
    IN_BODY(completion.state == State::kPeerLost && completion.peer == 1);
    IN_BODY(completion.tag == user_tag(1) && !handle.pending());
    IN_BODY(!node.membership().alive(1) && node.membership().alive(0));
    return kOk;
  });
}

// Whether it was killed or has given up: nobody waits for it until a deadline.
TEST(Conformance, ANodeThatFailsIsLost) {
  const auto outcomes = run_nodes(3, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    std::vector<std::byte> buffer(8);
    if (endpoint.rank() == 1) {
      node.clock().sleep(0.05);
      for (const Rank peer : {0, 2}) {  // why
        Handle last = endpoint.send(peer, user_tag(2), buffer);
        IN_BODY(endpoint.wait(last, kLong_s).state == State::kDone);
      }
      throw std::runtime_error("a bug");
    }
    Handle why = endpoint.receive(1, user_tag(2), buffer);
    IN_BODY(endpoint.wait(why, kLong_s).state == State::kDone);
    Handle handle = endpoint.receive(1, user_tag(1), buffer);
    const Completion completion = endpoint.wait(handle, kLong_s);
    IN_BODY(completion.state == State::kPeerLost && completion.peer == 1);
    IN_BODY(!node.membership().alive(1));
    // One that is done is not.
    if (endpoint.rank() == 2) return kOk;
    node.clock().sleep(0.05);
    IN_BODY(node.membership().alive(2));
    return kOk;
  });
  expect_ok(outcomes, 0);
  expect_ok(outcomes, 2);
  EXPECT_EQ(outcomes[1].kind, NodeOutcome::Kind::kFailed);
  EXPECT_EQ(outcomes[1].error, "a bug");
}

TEST(Conformance, WhatBeginsAfterTheLossEndsAtOnce) {
  run_with_victim(2, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    if (endpoint.rank() == 1) die_soon(node, {0});
    const double death_s = hear_of_death(node, 1);
    const auto event = next_event(node);
    IN_BODY(in_time(node, death_s));
    IN_BODY(event && event->kind == MemberEvent::Kind::kLost);
    IN_BODY(event->rank == 1 && event->incarnation == 0);
    IN_BODY(!node.membership().next_event());
    for (const size_t size : {size_t{8}, size_t{200'000}}) {
      std::vector<std::byte> buffer(size);
      Handle sent = endpoint.send(1, user_tag(1), buffer);
      Handle received = endpoint.receive(1, user_tag(1), buffer);
      const Completion send = endpoint.wait(sent, kLong_s);
      const Completion receive = endpoint.wait(received, kLong_s);
      IN_BODY(send.state == State::kPeerLost && send.peer == 1);
      IN_BODY(receive.state == State::kPeerLost && receive.peer == 1);
    }
    return kOk;
  });
}

TEST(Conformance, LossEndsASendThatWaitsForAReceive) {
  run_with_victim(2, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    if (endpoint.rank() == 1) die_soon(node, {0});
    const auto data = pattern(20'000'000, 1);
    const double death_s = hear_of_death(node, 1);
    Handle handle = endpoint.send(1, user_tag(1), data);
    const Completion completion = endpoint.wait(handle, kLong_s);
    IN_BODY(in_time(node, death_s));
    IN_BODY(completion.state == State::kPeerLost && completion.peer == 1);
    return kOk;
  });
}

// 256 MB whose second half nobody can touch, so that no transfer is faster than a death. A node
// that copies from or to it itself is killed in the middle; where its peer does the copying, that
// one is stuck there until the node kills itself. In simulated time it is ordinary memory: there
// the death has its moment.
class Pitfall {
 public:
  explicit Pitfall(Node& node)
      : data_(static_cast<std::byte*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))),
        while_s_(node.clock().simulated() ? 0.002 : 0.3) {
    if (node.clock().simulated()) return;
    std::signal(SIGSEGV, SIG_DFL);  // it is wanted: nobody has to report it,
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);  // nor to keep the corpse
    mprotect(data_ + kBytes / 2, kBytes / 2, PROT_NONE);
  }
  ~Pitfall() { munmap(data_, kBytes); }
  Pitfall(const Pitfall&) = delete;
  Pitfall& operator=(const Pitfall&) = delete;

  std::span<std::byte> memory() const { return {data_, kBytes}; }
  // Dies in the midst of this, sooner or later.
  std::string fall(Node& node, Handle& handle) const {
    IN_BODY(node.endpoint().wait(handle, while_s_).state == State::kTimedOut);
    kill(node);
    return "unharmed";
  }

  static constexpr size_t kBytes = 256'000'000;

 private:
  std::byte* data_;
  double while_s_;
};

TEST(Conformance, LossOfTheReceiverInMidTransfer) {
  run_with_victim(2, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    if (endpoint.rank() == 1) {
      const Pitfall pitfall(node);
      IN_BODY(hear(node, 0, 1));
      Handle handle = endpoint.receive(0, user_tag(1), pitfall.memory());
      return pitfall.fall(node, handle);
    }
    const std::vector<std::byte> data(Pitfall::kBytes);
    Handle handle = endpoint.send(1, user_tag(1), data);
    IN_BODY(tell(node, 1, 1));
    const Completion completion = endpoint.wait(handle, kLong_s);
    IN_BODY(completion.state == State::kPeerLost && completion.peer == 1);
    return kOk;
  });
}

TEST(Conformance, LossOfTheSenderInMidTransfer) {
  run_with_victim(2, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    if (endpoint.rank() == 1) {
      const Pitfall pitfall(node);
      IN_BODY(hear(node, 0, 1));
      Handle handle = endpoint.send(0, user_tag(1), pitfall.memory());
      return pitfall.fall(node, handle);
    }
    std::vector<std::byte> buffer(Pitfall::kBytes);
    Handle handle = endpoint.receive(1, user_tag(1), buffer);
    IN_BODY(tell(node, 1, 1));
    const Completion completion = endpoint.wait(handle, kLong_s);
    IN_BODY(completion.state == State::kPeerLost && completion.peer == 1);
    return kOk;
  });
}

TEST(Conformance, WhatHadArrivedCanStillBeReceived) {
  run_with_victim(2, [](Node& node) -> std::string {
    if (node.endpoint().rank() == 1) {
      for (uint64_t i = 0; i < 10; ++i) IN_BODY(send_number(node, 0, user_tag(1), i));
      IN_BODY(send_all(node, 0, user_tag(1), pattern(kEagerBytes, 1)));
      IN_BODY(tell(node, 0, 1));
      IN_BODY(hear(node, 0, 2));
      kill(node);
    }
    IN_BODY(hear(node, 1, 1));
    node.clock().sleep(0.2);
    IN_BODY(tell(node, 1, 2));
    IN_BODY(next_event(node));
    IN_BODY(!node.membership().alive(1));
    for (uint64_t i = 0; i < 10; ++i) IN_BODY(receive_number(node, 1, user_tag(1), i));
    IN_BODY(receive_exactly(node, 1, user_tag(1), pattern(kEagerBytes, 1)));
    std::vector<std::byte> buffer(8);
    Handle handle = node.endpoint().receive(1, user_tag(1), buffer);
    IN_BODY(node.endpoint().wait(handle, kLong_s).state == State::kPeerLost);
    return kOk;
  });
}

TEST(Conformance, LossOfOneLeavesTheOthersAlone) {
  run_with_victim(3, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    if (endpoint.rank() == 1) die_soon(node, {0, 2});
    const double death_s = hear_of_death(node, 1);
    const Rank peer = 2 - endpoint.rank();
    const auto large = pattern(500'000, 3);
    // A receive from anybody is not ended by the loss of one, nor is one from another peer.
    std::vector<std::byte> buffer(8);
    Handle anybody = endpoint.receive(kAnyRank, user_tag(1000), buffer);
    IN_BODY(next_event(node) && in_time(node, death_s));
    IN_BODY(endpoint.wait(anybody, kShort_s).state == State::kTimedOut);
    for (uint64_t i = 0; i < 50; ++i) {
      Handle sent = endpoint.send(peer, user_tag(i), large);
      IN_BODY(receive_exactly(node, peer, user_tag(i), large));
      IN_BODY(endpoint.wait(sent, kLong_s).state == State::kDone);
    }
    IN_BODY(send_number(node, peer, user_tag(1000), 1));
    IN_BODY(endpoint.wait(anybody, kLong_s).state == State::kDone);
    return kOk;
  });
}

TEST(Conformance, AnyLossCanEndEveryWait) {
  run_with_victim(3, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    if (endpoint.rank() == 1) die_soon(node, {0, 2});
    const double death_s = hear_of_death(node, 1);
    node.membership().end_waits_on_any_loss(true);
    const Rank peer = 2 - endpoint.rank();
    std::vector<std::byte> buffer(8);
    for (int i = 0; i < 2; ++i) {  // the second begins after the loss
      Handle named = endpoint.receive(peer, user_tag(1), buffer);
      const Completion completion = endpoint.wait(named, kLong_s);
      IN_BODY(in_time(node, death_s));
      IN_BODY(completion.state == State::kPeerLost && completion.peer == 1);
      IN_BODY(!named.pending());
      std::vector<Handle> handles(1);
      handles[0] = endpoint.receive(kAnyRank, user_tag(1), buffer);
      const auto [index, any] = endpoint.wait_any(handles, kLong_s);
      IN_BODY(index == 0 && any.state == State::kPeerLost && any.peer == 1);
    }
    node.membership().end_waits_on_any_loss(false);
    IN_BODY(send_number(node, peer, user_tag(2), 4));
    IN_BODY(receive_number(node, peer, user_tag(2), 4));
    return kOk;
  });
}

// As those do who go on without a lost peer: only another loss ends all that they wait for.
TEST(Conformance, ALossOfThoseWhoAreLeftCanEndEveryWait) {
  run_with_victim(4, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    if (endpoint.rank() == 1) die_soon(node, {0, 2, 3});
    const double death_s = hear_of_death(node, 1);
    IN_BODY(next_event(node) && in_time(node, death_s));
    node.membership().end_waits_on_loss_of({0, 2, 3});
    const Rank next = endpoint.rank() == 0 ? 2 : endpoint.rank() == 2 ? 3 : 0;
    const Rank last = endpoint.rank() == 0 ? 3 : endpoint.rank() == 2 ? 0 : 2;
    IN_BODY(send_number(node, next, user_tag(1), 4));
    IN_BODY(receive_number(node, last, user_tag(1), 4));
    std::vector<std::byte> buffer(8);
    Handle handle = endpoint.receive(next, user_tag(2), buffer);
    IN_BODY(endpoint.wait(handle, kShort_s).state == State::kTimedOut);
    node.membership().end_waits_on_loss_of({1});  // it counts again, and ends this one at once
    const Completion completion = endpoint.wait(handle, kLong_s);
    IN_BODY(completion.state == State::kPeerLost && completion.peer == 1);
    return kOk;
  });
}

// As a synchronous strategy does it: whoever waits for whomever, all name the one that was lost.
TEST(Conformance, AllSurvivorsNameTheRightRank) {
  constexpr int kNodes = 6;
  constexpr Rank kVictim = 3;
  const auto outcomes = run_nodes(kNodes, [](Node& node) -> std::string {
    node.membership().end_waits_on_any_loss(true);
    const Rank self = node.endpoint().rank();
    const Rank next = (self + 1) % kNodes;
    const Rank last = (self + kNodes - 1) % kNodes;
    std::vector<std::byte> out(100'000), in(100'000);
    for (uint64_t step = 0; step < 100; ++step) {
      if (self == kVictim && step == 10) kill(node);
      const Tag tag(Purpose::kGradient, Tag::wrapped(step));
      Handle handle = node.endpoint().receive(last, tag, in);
      send(node, next, tag, out);
      finish(node, handle);
    }
    return "went on without it";
  });
  for (Rank rank = 0; rank < kNodes; ++rank) {
    const NodeOutcome& outcome = outcomes[static_cast<size_t>(rank)];
    if (rank == kVictim) {
      expect_lost(outcomes, rank);
      continue;
    }
    EXPECT_EQ(outcome.kind, NodeOutcome::Kind::kFailed) << rank;
    EXPECT_EQ(outcome.exit_code, 4) << rank;
    EXPECT_EQ(outcome.lost_peer, kVictim) << rank << ": " << outcome.error;
  }
}

TEST(Conformance, ANormalEndIsNoLoss) {
  const auto outcomes = run_nodes(3, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    if (endpoint.rank() == 1) {
      // Sent is sent, also if the sender is gone before anybody looks.
      for (uint64_t i = 0; i < 100; ++i) IN_BODY(send_number(node, 0, user_tag(1), i));
      return kOk;
    }
    node.membership().end_waits_on_any_loss(true);
    const Rank peer = 2 - endpoint.rank();
    node.clock().sleep(0.2);
    IN_BODY(send_number(node, peer, user_tag(2), 4));
    IN_BODY(receive_number(node, peer, user_tag(2), 4));
    if (endpoint.rank() == 0)
      for (uint64_t i = 0; i < 100; ++i) IN_BODY(receive_number(node, 1, user_tag(1), i));
    IN_BODY(!node.membership().next_event());
    std::vector<std::byte> buffer(8);
    Handle handle = endpoint.receive(1, user_tag(1), buffer);
    IN_BODY(endpoint.wait(handle, kShort_s).state == State::kTimedOut);
    return kOk;
  });
  for (Rank rank = 0; rank < 3; ++rank) expect_ok(outcomes, rank);
}

// What one incarnation sent, or was sent, never reaches another.
TEST(Conformance, RestartsWithANewIncarnation) {
  if (!fabric_under_test().kill_and_restart) GTEST_SKIP() << "this fabric restarts no nodes";
  run_all_ok(2, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    Membership& membership = node.membership();
    const uint32_t incarnation = membership.incarnation(1);
    if (endpoint.rank() == 1) {
      if (incarnation == 0) {
        for (const uint64_t tag : {1u, 2u}) IN_BODY(send_number(node, 0, user_tag(tag), 100));
        IN_BODY(tell(node, 0, 1));
        IN_BODY(hear(node, 0, 2));
        fabric_under_test().kill_and_restart(node);
      }
      IN_BODY(incarnation == 1 && membership.incarnation(0) == 0);
      IN_BODY(hear(node, 0, 3));
      IN_BODY(receive_number(node, 0, user_tag(3), 301));
      for (const uint64_t tag : {1u, 2u}) IN_BODY(send_number(node, 0, user_tag(tag), 101));
      return kOk;
    }
    IN_BODY(hear(node, 1, 1));
    IN_BODY(send_number(node, 1, user_tag(3), 300));  // for the one that dies
    node.clock().sleep(0.1);
    IN_BODY(tell(node, 1, 2));
    const auto lost = next_event(node);
    IN_BODY(lost && lost->kind == MemberEvent::Kind::kLost);
    IN_BODY(lost->rank == 1 && lost->incarnation == 0);
    const auto joined = next_event(node);
    IN_BODY(joined && joined->kind == MemberEvent::Kind::kJoined);
    IN_BODY(joined->rank == 1 && joined->incarnation == 1);
    IN_BODY(membership.alive(1) && membership.incarnation(1) == 1);
    IN_BODY(tell(node, 1, 3));
    IN_BODY(send_number(node, 1, user_tag(3), 301));
    IN_BODY(receive_number(node, 1, user_tag(1), 101));
    uint64_t value = 0;
    Handle handle =
        endpoint.receive(kAnyRank, user_tag(2), std::as_writable_bytes(std::span(&value, 1)));
    IN_BODY(endpoint.wait(handle, kLong_s).state == State::kDone);
    IN_BODY(value == 101);
    return kOk;
  });
}

}  // namespace
}  // namespace tutti

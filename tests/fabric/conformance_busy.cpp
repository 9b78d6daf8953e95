// Conformance: peers that compute, and so make no Node calls for a while. Nobody may have to wait
// for them who does not want anything of them.
#include <algorithm>

#include "tests/fabric/conformance.h"

namespace tutti {
namespace {

constexpr double kBusy_s = 2;
constexpr double kAtOnce_s = 1;  // far less than kBusy_s, far more than a busy machine needs
constexpr size_t kMany = 100;    // more than any queue between two nodes holds

const size_t kSizes[] = {8, 3000, 65'536, 70'000, 1'000'000};

// Both ways, with all sizes: nothing is wrong between the two.
bool exchange(Node& node, Rank peer) {
  for (size_t i = 0; i < 10; ++i) {
    const auto data = pattern(kSizes[i % 5], i);
    const Tag tag(Purpose::kControl, Tag::wrapped(500 + i));
    Handle sent = node.endpoint().send(peer, tag, data);
    if (!receive_exactly(node, peer, tag, data)) return false;
    if (node.endpoint().wait(sent, kLong_s).state != State::kDone) return false;
  }
  return true;
}

TEST(Conformance, ABusyPeerGetsEverythingInOrder) {
  run_all_ok(2, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    if (endpoint.rank() == 1) {
      compute(node, kBusy_s / 2);
      for (size_t i = 0; i < kMany; ++i)
        IN_BODY(receive_exactly(node, 0, user_tag(1), pattern(kEagerBytes, i)));
      return kOk;
    }
    std::vector<std::vector<std::byte>> data;
    std::vector<Handle> handles;
    for (size_t i = 0; i < kMany; ++i) {
      data.push_back(pattern(kEagerBytes, i));
      handles.push_back(endpoint.send(1, user_tag(1), data.back()));
    }
    for (Handle& handle : handles) IN_BODY(endpoint.wait(handle, kLong_s).state == State::kDone);
    return kOk;
  });
}

// How many sends of so many bytes end at once though the peer makes no Node calls, wherever in its
// queue the two have come before.
void expect_held(size_t bytes, size_t count, size_t before) {
  run_all_ok(2, [&](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    for (size_t i = 0; i < before; ++i) {
      const bool carried = endpoint.rank() == 0 ? tell(node, 1, 2 + i) : hear(node, 0, 2 + i);
      IN_BODY(carried);
    }
    if (endpoint.rank() == 1) {
      IN_BODY(tell(node, 0, 1));
      compute(node, kBusy_s);
      for (size_t i = 0; i < count; ++i)
        IN_BODY(receive_exactly(node, 0, user_tag(1), pattern(bytes, i)));
      return kOk;
    }
    IN_BODY(hear(node, 1, 1));
    const double start_s = node.clock().now();
    for (size_t i = 0; i < count; ++i) IN_BODY(send_all(node, 1, user_tag(1), pattern(bytes, i)));
    IN_BODY(node.clock().now() - start_s < kAtOnce_s);
    return kOk;
  });
}

TEST(Conformance, ABusyPeerHoldsAsManyAsPromised) {
  for (const size_t before : {0U, 15U}) {
    expect_held(8, fabric_under_test().holds_small, before);
    expect_held(kEagerBytes, fabric_under_test().holds_large, before);
  }
}

// What could not be called back any more arrives whole, though its buffer is free.
TEST(Conformance, CancellingNeedsNothingOfABusyPeer) {
  run_all_ok(2, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    if (endpoint.rank() == 1) {
      compute(node, kBusy_s);
      std::vector<uint64_t> sent(2 * kMany);
      Handle list = endpoint.receive(0, user_tag(2), std::as_writable_bytes(std::span(sent)));
      sent.resize(endpoint.wait(list, kLong_s).bytes / sizeof(uint64_t));
      for (const uint64_t i : sent)
        IN_BODY(receive_exactly(node, 0, user_tag(1), pattern(kSizes[i % 5], i)));
      IN_BODY(exchange(node, 0));
      return kOk;
    }
    std::vector<std::vector<std::byte>> data;
    std::vector<Handle> handles;
    for (size_t i = 0; i < 2 * kMany; ++i) data.push_back(pattern(kSizes[i % 5], i));
    for (const auto& message : data) handles.push_back(endpoint.send(1, user_tag(1), message));
    static_cast<void>(endpoint.wait(handles.back(), 0.1));
    const double start_s = node.clock().now();
    std::vector<uint64_t> sent;
    for (size_t i = 0; i < handles.size(); ++i) {
      const State state = handles[i].pending() ? endpoint.cancel(handles[i]).state : State::kDone;
      IN_BODY(state == State::kDone || state == State::kCancelled);
      if (state == State::kDone) sent.push_back(i);
    }
    IN_BODY(node.clock().now() - start_s < kAtOnce_s);
    for (auto& message : data) std::fill(message.begin(), message.end(), std::byte{0xee});
    IN_BODY(send_all(node, 1, user_tag(2), std::as_bytes(std::span(sent))));
    IN_BODY(exchange(node, 1));
    return kOk;
  });
}

// Every second node computes when its queue to the next one is full, and half of a message is out:
// a few small ones ahead of the large ones move the place where that happens.
std::string send_and_compute(Node& node, uint64_t ahead) {
  Endpoint& endpoint = node.endpoint();
  const Rank peer = endpoint.rank() + 1;
  std::vector<std::vector<std::byte>> data;
  std::vector<Handle> handles;
  for (uint64_t i = 0; i < ahead; ++i) IN_BODY(tell(node, peer, 1));
  for (size_t i = 0; i < kMany; ++i) {
    data.push_back(pattern(kEagerBytes, i));
    handles.push_back(endpoint.send(peer, user_tag(1), data.back()));
  }
  compute(node, kBusy_s);
  for (Handle& handle : handles) IN_BODY(endpoint.wait(handle, kLong_s).state == State::kDone);
  return kOk;
}

// Two receives at a time: when the first does not get on, it is cancelled, and the second takes its
// place.
std::string receive_and_cancel(Node& node, uint64_t ahead, bool from_anybody) {
  Endpoint& endpoint = node.endpoint();
  const Rank peer = endpoint.rank() - 1;
  const double start_s = node.clock().now();
  compute(node, kBusy_s / 8);
  for (uint64_t i = 0; i < ahead; ++i) IN_BODY(hear(node, peer, 1));
  size_t next = 0;
  while (next < kMany) {
    std::vector<std::byte> first(kEagerBytes), second(kEagerBytes);
    Handle handle = endpoint.receive(from_anybody ? kAnyRank : peer, user_tag(1), first);
    const bool last = next + 1 == kMany;
    Handle behind = last ? Handle() : endpoint.receive(peer, user_tag(1), second);
    State state = endpoint.wait(handle, 0.05).state;
    if (state == State::kTimedOut) {
      const bool still_busy = node.clock().now() - start_s < kBusy_s / 2;
      state = endpoint.cancel(handle).state;
      IN_BODY(state == State::kCancelled || (!still_busy && state == State::kDone));
    }
    const auto seen = first;
    if (state == State::kDone) IN_BODY(first == pattern(kEagerBytes, next++));
    if (last) continue;
    IN_BODY(endpoint.wait(behind, kLong_s).state == State::kDone);
    IN_BODY(second == pattern(kEagerBytes, next++));
    IN_BODY(first == seen);  // nobody has touched it since
  }
  return kOk;
}

TEST(Conformance, ACancelledReceiveTakesNotEvenHalfAMessage) {
  run_all_ok(16, [](Node& node) -> std::string {
    const Rank self = node.endpoint().rank();
    const auto ahead = static_cast<uint64_t>(self / 2 % 4);
    return self % 2 == 0 ? send_and_compute(node, ahead)
                         : receive_and_cancel(node, ahead, self >= 8);
  });
}

// Rank 3 dies when rank 1 has more under way to rank 2 than goes without its help. Later the two
// can talk as if nothing had been.
TEST(Conformance, LossIsNoticedBesideABusyPeer) {
  const auto outcomes = run_nodes(4, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    const Rank self = endpoint.rank();
    if (self == 3) die_soon(node, {1});
    if (self == 0) return kOk;
    if (self == 2) {
      compute(node, 1.5 * kBusy_s);
      IN_BODY(exchange(node, 1));
      return kOk;
    }
    std::vector<std::vector<std::byte>> data;
    for (size_t i = 0; i < kMany; ++i) data.push_back(pattern(kSizes[i % 5], i));
    const double death_s = hear_of_death(node, 3);
    node.membership().end_waits_on_any_loss(true);
    std::vector<Handle> handles;
    std::vector<std::byte> in(kEagerBytes);
    handles.push_back(endpoint.receive(2, user_tag(1), in));
    for (const auto& message : data) handles.push_back(endpoint.send(2, user_tag(1), message));
    const Completion first = endpoint.wait(handles[0], kLong_s);
    IN_BODY(first.state == State::kPeerLost && first.peer == 3);
    IN_BODY(in_time(node, death_s));
    for (Handle& handle : handles) {
      if (!handle.pending()) continue;
      const auto completion = endpoint.test(handle);
      IN_BODY(completion && !handle.pending());
      IN_BODY(completion->state == State::kPeerLost || completion->state == State::kDone);
    }
    IN_BODY(in_time(node, death_s));
    node.membership().end_waits_on_any_loss(false);
    IN_BODY(exchange(node, 2));
    return kOk;
  });
  for (const Rank rank : {0, 1, 2}) expect_ok(outcomes, rank);
  expect_lost(outcomes, 3);
}

}  // namespace
}  // namespace tutti

// Conformance: order, sizes and matching of messages.
#include <algorithm>

#include "tests/fabric/conformance.h"

namespace tutti {
namespace {

TEST(Conformance, KeepsTheOrderOfEachPeerAndTag) {
  constexpr uint64_t kMessages = 1000;
  run_all_ok(3, [](Node& node) -> std::string {
    if (node.endpoint().rank() != 0) {
      const auto peer = static_cast<uint64_t>(node.endpoint().rank());
      for (uint64_t i = 0; i < kMessages; ++i) {
        IN_BODY(send_number(node, 0, user_tag(1), peer * 10000 + i));
        IN_BODY(send_number(node, 0, user_tag(2), peer * 20000 + i));
      }
      return kOk;
    }
    // The second tag first: what was sent in between must wait, not get lost or mixed up.
    for (uint64_t i = 0; i < kMessages; ++i)
      for (const Rank peer : {2, 1})
        IN_BODY(receive_number(node, peer, user_tag(2), static_cast<uint64_t>(peer) * 20000 + i));
    for (uint64_t i = 0; i < kMessages; ++i)
      for (const Rank peer : {1, 2})
        IN_BODY(receive_number(node, peer, user_tag(1), static_cast<uint64_t>(peer) * 10000 + i));
    return kOk;
  });
}

// Small messages overtake large ones on the wire, but not in the order in which they are received.
TEST(Conformance, KeepsTheOrderOfMixedSizes) {
  const std::vector<size_t> sizes{1'000'000, 8, 70'000, 0, 65'536, 65'537, 3, 2'000'000, 1};
  for (const bool receives_first : {false, true})
    run_all_ok(2, [&](Node& node) -> std::string {
      Endpoint& endpoint = node.endpoint();
      std::vector<std::vector<std::byte>> expected, buffers(sizes.size());
      for (size_t i = 0; i < sizes.size(); ++i) expected.push_back(pattern(sizes[i], i));
      std::vector<Handle> handles;
      if (endpoint.rank() == 0) {
        if (receives_first) IN_BODY(hear(node, 1, 1));
        for (const auto& message : expected)
          handles.push_back(endpoint.send(1, user_tag(7), message));
        if (!receives_first) IN_BODY(tell(node, 1, 1));
      } else {
        if (!receives_first) IN_BODY(hear(node, 0, 1));
        for (size_t i = 0; i < sizes.size(); ++i) {
          buffers[i].resize(2'000'000);
          handles.push_back(endpoint.receive(0, user_tag(7), buffers[i]));
        }
        if (receives_first) IN_BODY(tell(node, 0, 1));
      }
      for (size_t i = 0; i < sizes.size(); ++i) {
        const Completion completion = endpoint.wait(handles[i], kLong_s);
        IN_BODY(completion.state == State::kDone);
        IN_BODY(completion.bytes == sizes[i]);
        IN_BODY(!handles[i].pending());
        if (endpoint.rank() == 0) continue;
        buffers[i].resize(sizes[i]);
        IN_BODY(buffers[i] == expected[i]);
      }
      return kOk;
    });
}

TEST(Conformance, ReceivesFromAnybody) {
  run_all_ok(5, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    const auto self = static_cast<uint64_t>(endpoint.rank());
    if (endpoint.rank() != 0) {
      for (uint64_t i = 0; i < 20; ++i) IN_BODY(send_number(node, 0, user_tag(3), self * 100 + i));
      const auto large = pattern(100'000, self);
      IN_BODY(send_all(node, 0, user_tag(4), large));
      return kOk;
    }
    std::vector<uint64_t> next(5, 0);
    for (int i = 0; i < 80; ++i) {
      uint64_t value = 0;
      Handle handle =
          endpoint.receive(kAnyRank, user_tag(3), std::as_writable_bytes(std::span(&value, 1)));
      const Completion completion = endpoint.wait(handle, kLong_s);
      IN_BODY(completion.state == State::kDone);
      IN_BODY(completion.peer >= 1 && completion.peer <= 4);
      const auto peer = static_cast<size_t>(completion.peer);
      IN_BODY(value == peer * 100 + next[peer]++);
    }
    std::vector<bool> seen(5, false);
    for (int i = 0; i < 4; ++i) {
      std::vector<std::byte> buffer(100'000);
      Handle handle = endpoint.receive(kAnyRank, user_tag(4), buffer);
      const Completion completion = endpoint.wait(handle, kLong_s);
      IN_BODY(completion.state == State::kDone);
      const auto peer = static_cast<size_t>(completion.peer);
      IN_BODY(!seen.at(peer));
      seen[peer] = true;
      IN_BODY(buffer == pattern(100'000, peer));
    }
    return kOk;
  });
}

TEST(Conformance, SendsToItself) {
  run_all_ok(2, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    const Rank self = endpoint.rank();
    IN_BODY(send_number(node, self, user_tag(1), 42));
    IN_BODY(receive_number(node, self, user_tag(1), 42));
    const auto large = pattern(300'000, 5);
    Handle sent = endpoint.send(self, user_tag(2), large);
    IN_BODY(receive_exactly(node, self, user_tag(2), large));
    IN_BODY(endpoint.wait(sent, kLong_s).state == State::kDone);
    return kOk;
  });
}

TEST(Conformance, CarriesEmptyMessages) {
  run_all_ok(2, [](Node& node) -> std::string {
    const Rank peer = 1 - node.endpoint().rank();
    for (uint64_t i = 0; i < 10; ++i) {
      IN_BODY(send_all(node, peer, user_tag(i), {}));
      IN_BODY(receive_exactly(node, peer, user_tag(i), {}));
    }
    return kOk;
  });
}

TEST(Conformance, Carries256Megabytes) {
  run_all_ok(2, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    constexpr size_t kSize = 256'000'000;
    std::vector<uint64_t> words(kSize / sizeof(uint64_t));
    if (endpoint.rank() == 0) {
      for (size_t i = 0; i < words.size(); ++i) words[i] = i * 2654435761u;
      IN_BODY(send_all(node, 1, user_tag(1), std::as_bytes(std::span(words))));
      return kOk;
    }
    Handle handle = endpoint.receive(0, user_tag(1), std::as_writable_bytes(std::span(words)));
    const Completion completion = endpoint.wait(handle, kLong_s);
    IN_BODY(completion.state == State::kDone);
    IN_BODY(completion.bytes == kSize);
    for (size_t i = 0; i < words.size(); ++i) IN_BODY(words[i] == i * 2654435761u);
    return kOk;
  });
}

TEST(Conformance, KeepsThousandsInFlight) {
  run_all_ok(2, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    constexpr size_t kMessages = 5000;
    const Rank peer = 1 - endpoint.rank();
    std::vector<uint64_t> out(kMessages), in(kMessages);
    std::vector<Handle> handles;
    const auto bytes = [](uint64_t& value) { return std::as_writable_bytes(std::span(&value, 1)); };
    // Half of the receives are there before the messages, half of the messages before them.
    for (size_t i = 0; i < kMessages / 2; ++i)
      handles.push_back(endpoint.receive(peer, user_tag(i % 7), bytes(in[i])));
    IN_BODY(barrier(node, 1));
    for (size_t i = 0; i < kMessages; ++i) {
      out[i] = i * 3;
      handles.push_back(endpoint.send(peer, user_tag(i % 7), bytes(out[i])));
    }
    IN_BODY(barrier(node, 2));
    for (size_t i = kMessages / 2; i < kMessages; ++i)
      handles.push_back(endpoint.receive(peer, user_tag(i % 7), bytes(in[i])));
    std::reverse(handles.begin(), handles.end());
    for (Handle& handle : handles) IN_BODY(endpoint.wait(handle, kLong_s).state == State::kDone);
    for (size_t i = 0; i < kMessages; ++i) IN_BODY(in[i] == i * 3);
    return kOk;
  });
}

// Steps of tags begin again after a long run; what is under way then is told apart all the same.
TEST(Conformance, TellsMessagesApartWhereStepsBeginAgain) {
  run_all_ok(2, [](Node& node) -> std::string {
    constexpr uint64_t kFew = 8, kFirst = Tag::kSteps - kFew / 2;
    if (node.endpoint().rank() == 0) {
      for (uint64_t i = 0; i < kFew; ++i) IN_BODY(send_number(node, 1, user_tag(kFirst + i), i));
      return hear(node, 1, 1) ? kOk : "the other has not received all";
    }
    for (uint64_t i = kFew; i-- > 0;)
      IN_BODY(receive_number(node, 0, user_tag(kFirst + i), i));
    return tell(node, 0, 1) ? kOk : "the signal failed";
  });
}

TEST(Conformance, EagerSendsCompleteWithoutReceive) {
  run_all_ok(2, [](Node& node) -> std::string {
    const auto data = pattern(kEagerBytes, 9);
    if (node.endpoint().rank() == 0) {
      auto scratch = data;
      IN_BODY(send_all(node, 1, user_tag(1), scratch));
      std::fill(scratch.begin(), scratch.end(), std::byte{0});  // its buffer may be reused
      return tell(node, 1, 1) ? kOk : "the signal failed";
    }
    IN_BODY(hear(node, 0, 1));
    IN_BODY(receive_exactly(node, 0, user_tag(1), data));
    return kOk;
  });
}

TEST(Conformance, TruncatesWithoutWritingBeyondTheBuffer) {
  run_all_ok(2, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    for (const size_t sent : {size_t{100}, size_t{1'000'000}}) {
      const size_t room = sent * 2 / 5;
      const auto data = pattern(sent, 3);
      if (endpoint.rank() == 0) {
        Handle handle = endpoint.send(1, user_tag(sent), data);
        const State state = endpoint.wait(handle, kLong_s).state;
        IN_BODY(state == State::kDone || state == State::kTruncated);
      } else {
        std::vector<std::byte> buffer(sent, std::byte{0xee});
        Handle handle = endpoint.receive(0, user_tag(sent), {buffer.data(), room});
        IN_BODY(endpoint.wait(handle, kLong_s).state == State::kTruncated);
        for (size_t i = room; i < sent; ++i) IN_BODY(buffer[i] == std::byte{0xee});
      }
      // The stream goes on.
      if (endpoint.rank() == 0) IN_BODY(send_number(node, 1, user_tag(sent), 17));
      if (endpoint.rank() == 1) IN_BODY(receive_number(node, 0, user_tag(sent), 17));
    }
    return kOk;
  });
}

TEST(Conformance, ShorterMessagesSayTheirSize) {
  run_all_ok(2, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    for (const size_t sent : {size_t{10}, size_t{200'000}}) {
      const auto data = pattern(sent, 4);
      if (endpoint.rank() == 0) {
        IN_BODY(send_all(node, 1, user_tag(sent), data));
        continue;
      }
      std::vector<std::byte> buffer(400'000, std::byte{0xee});
      Handle handle = endpoint.receive(0, user_tag(sent), buffer);
      const Completion completion = endpoint.wait(handle, kLong_s);
      IN_BODY(completion.state == State::kDone);
      IN_BODY(completion.bytes == sent);
      IN_BODY(std::equal(data.begin(), data.end(), buffer.begin()));
      IN_BODY(buffer[sent] == std::byte{0xee});
    }
    return kOk;
  });
}

TEST(Conformance, CountsItsTraffic) {
  run_all_ok(2, [](Node& node) -> std::string {
    if (node.endpoint().rank() == 0) {
      IN_BODY(send_all(node, 1, user_tag(1), pattern(100, 1)));
      IN_BODY(send_all(node, 1, user_tag(1), pattern(100'000, 1)));
      IN_BODY(node.endpoint().traffic().messages_sent == 2);
      IN_BODY(node.endpoint().traffic().bytes_sent == 100'100);
    } else {
      IN_BODY(receive_exactly(node, 0, user_tag(1), pattern(100, 1)));
      IN_BODY(receive_exactly(node, 0, user_tag(1), pattern(100'000, 1)));
      IN_BODY(node.endpoint().traffic().messages_sent == 0);
    }
    return kOk;
  });
}

TEST(Conformance, SurvivesAStormOfPairs) {
  run_all_ok(8, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    const int nodes = endpoint.size();
    const auto self = static_cast<uint64_t>(endpoint.rank());
    for (uint64_t round = 0; round < 50; ++round) {
      const size_t size = round % 10 == 9 ? 80'000 : 1000;
      const auto out = pattern(size, self + round);
      std::vector<std::vector<std::byte>> in(static_cast<size_t>(nodes));
      std::vector<Handle> handles;
      for (Rank peer = 0; peer < nodes; ++peer) {
        auto& buffer = in[static_cast<size_t>(peer)];
        buffer.resize(size);
        handles.push_back(endpoint.receive(peer, user_tag(round), buffer));
        handles.push_back(endpoint.send(peer, user_tag(round), out));
      }
      for (Handle& handle : handles) IN_BODY(endpoint.wait(handle, kLong_s).state == State::kDone);
      for (size_t peer = 0; peer < in.size(); ++peer)
        IN_BODY(in[peer] == pattern(size, peer + round));
    }
    return kOk;
  });
}

TEST(Conformance, RunsMoreNodesThanCores) {
  run_all_ok(16, [](Node& node) -> std::string {
    for (uint64_t round = 0; round < 30; ++round) IN_BODY(barrier(node, round));
    return kOk;
  });
}

}  // namespace
}  // namespace tutti

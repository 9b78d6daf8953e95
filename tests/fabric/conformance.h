// The contract of node.h as tests: every fabric runs exactly these.
//
// A fabric joins by one file that defines fabric_under_test(), linked with all conformance_*.cpp.
// Nodes may be other processes, so a body says what it saw by the string it returns: "ok", or the
// first expectation that failed.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fabric/fabric.h"

namespace tutti {

struct ConformanceOptions {
  double timeout_s = 60;
  std::vector<std::string> roles;  // empty: "worker" for all
};

struct FabricUnderTest {
  std::function<std::unique_ptr<Fabric>(int nodes, const ConformanceOptions&)> make;
  // All of its nodes are on one host, so that they can open windows; otherwise they must get none.
  bool has_windows;
  // Messages of 8 bytes, and of kEagerBytes, that it holds for a peer that makes no Node calls.
  size_t holds_small, holds_large;
  // Kills the calling node on the spot; no destructor runs, or the fabric must not notice if so.
  std::function<void(Node&)> kill;
  // The same, and the fabric starts it again soon. Null if it cannot.
  std::function<void(Node&)> kill_and_restart;
};

const FabricUnderTest& fabric_under_test();

// Used within a body: returns from it with the place and the text of an expectation that fails.
#define IN_BODY(condition) \
  if (!(condition)) return fmt::format("line {}: {}", __LINE__, #condition)

inline constexpr double kLong_s = 30;         // for what must happen
inline constexpr double kShort_s = 0.2;       // for what must not
inline constexpr double kNotice_s = 2;        // who is inside a Node call notices a loss within it
inline constexpr size_t kWaits = 16'000'000;  // no fabric takes so much without a receive
inline constexpr const char* kOk = "ok";

inline Tag user_tag(uint64_t step, uint64_t part = 0) {
  return Tag(Purpose::kUser, Tag::wrapped(step), part);
}

inline std::vector<std::byte> pattern(size_t size, uint64_t seed) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>((seed * 131 + i * 7 + (i >> 11)) & 0xff);
  return bytes;
}

inline std::vector<NodeOutcome> run_nodes(int nodes, const Fabric::Body& body,
                                          const ConformanceOptions& options = {}) {
  const std::atomic<bool> stop{false};
  return fabric_under_test().make(nodes, options)->run(body, stop);
}

inline void expect_ok(const std::vector<NodeOutcome>& outcomes, Rank rank) {
  const NodeOutcome& outcome = outcomes.at(static_cast<size_t>(rank));
  EXPECT_EQ(outcome.kind, NodeOutcome::Kind::kDone) << "rank " << rank << ": " << outcome.error;
  EXPECT_EQ(outcome.result, kOk) << "rank " << rank << ": " << outcome.error;
}

inline void expect_lost(const std::vector<NodeOutcome>& outcomes, Rank rank) {
  EXPECT_EQ(outcomes.at(static_cast<size_t>(rank)).kind, NodeOutcome::Kind::kLost) << rank;
}

inline void run_all_ok(int nodes, const Fabric::Body& body,
                       const ConformanceOptions& options = {}) {
  const auto outcomes = run_nodes(nodes, body, options);
  ASSERT_EQ(outcomes.size(), static_cast<size_t>(nodes));
  for (Rank rank = 0; rank < nodes; ++rank) expect_ok(outcomes, rank);
}

// A body that needs a window returns this when it gets none: all of them must, or none.
inline constexpr const char* kNoWindow = "no window";
inline bool expect_windows(const std::vector<NodeOutcome>& outcomes) {
  if (fabric_under_test().has_windows) return true;
  for (const NodeOutcome& outcome : outcomes) EXPECT_EQ(outcome.result, kNoWindow) << outcome.error;
  return false;
}

// Blocking, and true when done as expected.
inline bool send_all(Node& node, Rank to, Tag tag, std::span<const std::byte> data) {
  Handle handle = node.endpoint().send(to, tag, data);
  return node.endpoint().wait(handle, kLong_s).state == State::kDone;
}

inline bool receive_exactly(Node& node, Rank from, Tag tag, std::span<const std::byte> expected) {
  std::vector<std::byte> buffer(expected.size());
  Handle handle = node.endpoint().receive(from, tag, buffer);
  const Completion completion = node.endpoint().wait(handle, kLong_s);
  return completion.state == State::kDone && completion.peer == from && completion.tag == tag &&
         completion.bytes == expected.size() &&
         (expected.empty() || std::memcmp(buffer.data(), expected.data(), expected.size()) == 0);
}

inline bool send_number(Node& node, Rank to, Tag tag, uint64_t value) {
  return send_all(node, to, tag, std::as_bytes(std::span(&value, 1)));
}

inline bool receive_number(Node& node, Rank from, Tag tag, uint64_t expected) {
  return receive_exactly(node, from, tag, std::as_bytes(std::span(&expected, 1)));
}

// A signal without content.
inline bool tell(Node& node, Rank to, uint64_t what) {
  return send_all(node, to, Tag(Purpose::kControl, Tag::wrapped(what)), {});
}
inline bool hear(Node& node, Rank from, uint64_t what) {
  return receive_exactly(node, from, Tag(Purpose::kControl, Tag::wrapped(what)), {});
}

// Through rank 0.
inline bool barrier(Node& node, uint64_t round) {
  const int nodes = node.endpoint().size();
  if (node.endpoint().rank() != 0) return tell(node, 0, 2 * round) && hear(node, 0, 2 * round + 1);
  bool ok = true;
  for (Rank rank = 1; rank < nodes; ++rank) ok = ok && hear(node, rank, 2 * round);
  for (Rank rank = 1; rank < nodes; ++rank) ok = ok && tell(node, rank, 2 * round + 1);
  return ok;
}

// Works without a Node call.
inline void compute(Node& node, double seconds) {
  if (node.clock().simulated())
    node.clock().sleep(seconds);
  else
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

inline constexpr uint64_t kDeath = 1000;  // what a victim tells, see tell()

// Says when it will die, to those who want to know and have come to see it, and does.
inline void die_soon(Node& node, const std::vector<Rank>& witnesses) {
  for (const Rank witness : witnesses) hear(node, witness, kDeath);
  const double death_s = node.clock().now() + 0.1;
  for (const Rank witness : witnesses)
    send_all(node, witness, Tag(Purpose::kControl, kDeath), std::as_bytes(std::span(&death_s, 1)));
  node.clock().sleep(death_s - node.clock().now());
  fabric_under_test().kill(node);
}

inline double hear_of_death(Node& node, Rank victim) {
  double death_s = 0;
  tell(node, victim, kDeath);
  Handle handle = node.endpoint().receive(victim, Tag(Purpose::kControl, kDeath),
                                          std::as_writable_bytes(std::span(&death_s, 1)));
  return node.endpoint().wait(handle, kLong_s).state == State::kDone ? death_s : 0;
}

inline bool in_time(Node& node, double death_s) {
  return death_s > 0 && node.clock().now() - death_s < kNotice_s;
}

// The next event, or none within kLong_s.
inline std::optional<MemberEvent> next_event(Node& node) {
  const double end_s = node.clock().now() + kLong_s;
  while (node.clock().now() < end_s) {
    if (const auto event = node.membership().next_event()) return event;
    node.clock().sleep(0.005);
  }
  return std::nullopt;
}

}  // namespace tutti

// Node: one participant's view of the cluster. Read this file first.
//
// Strategies see nothing else of the machine: no thread, socket, system clock or random device.
// A Node is three small interfaces, Endpoint, Clock and Membership, and an optional Window.
//
// The contract, which every fabric must pass (tests/fabric/conformance.h):
//  - Messages from one peer with one tag arrive in the order they were sent. Messages with
//    different tags or peers may overtake each other.
//  - A send completes when its buffer may be reused. Up to kEagerBytes it completes without a
//    posted receive; beyond that it may wait for one. For a peer that makes no Node calls a fabric
//    of processes holds 17 to 32 messages, or half as many of kEagerBytes; between hosts what a
//    connection buffers, at least 2 of those. Further ones complete, in order, when it makes some.
//  - A message larger than the receive's buffer completes the receive with kTruncated; nothing is
//    written beyond the buffer. A shorter one completes it with its own size.
//  - Every wait has a deadline. A wait that times out leaves its handle pending.
//  - Cancelling waits for nobody, whatever the peer does. A cancelled receive has taken nothing; a
//    send of more than kEagerBytes is received whole or not at all, one of less may be too late to
//    call back.
//  - A peer is lost when it dies, is cut off from the cluster, or leaves its body by an exception;
//    not when it is done, nor, between machines, when only the path between it and this node is
//    broken, where waits end by their deadlines. A loss ends, with kPeerLost, each receive that
//    names the peer and each unfinished send to it; after end_waits_on_any_loss(true), or of a rank
//    that end_waits_on_loss_of() names, every wait.
//    Who is inside a Node call notices it within 2 s. Messages that had arrived before can still be
//    received. New sends to a lost peer complete at once with kPeerLost.
//  - Messages of a peer's earlier incarnation are never delivered.
//  - A node that was asked to stop leaves any of these calls by InterruptedError.
//  - A Node is used by one thread (or actor) at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/arithmetic.h"
#include "fabric/tag.h"

namespace tutti {

inline constexpr size_t kEagerBytes = size_t{64} << 10;
inline constexpr size_t kBulkBytes = size_t{512} << 10;   // pieces of bulk between hosts
inline constexpr size_t kBlockBytes = size_t{512} << 10;  // blocks of it within one

enum class State { kPending, kDone, kTimedOut, kPeerLost, kCancelled, kTruncated };

// How a send or a receive ended. For kPeerLost, `peer` is the rank that was lost.
struct Completion {
  State state = State::kPending;
  Rank peer = kAnyRank;
  Tag tag;
  size_t bytes = 0;
};

class Endpoint;

// A send or receive under way. Owns it: destroying a pending handle cancels the operation, so a
// buffer never outlives its transfer when an exception unwinds a strategy.
class Handle {
 public:
  Handle() = default;
  Handle(Endpoint* endpoint, uint64_t id) : endpoint_(endpoint), id_(id) {}
  Handle(Handle&& other) noexcept
      : endpoint_(std::exchange(other.endpoint_, nullptr)), id_(other.id_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(endpoint_, other.endpoint_);
    std::swap(id_, other.id_);
    return *this;
  }
  ~Handle();

  bool pending() const { return endpoint_ != nullptr; }
  uint64_t id() const { return id_; }
  void release() { endpoint_ = nullptr; }  // called by the endpoint when the operation has ended

 private:
  Endpoint* endpoint_ = nullptr;
  uint64_t id_ = 0;
};

// Memory that the peers on this host read and write directly, with counters to take turns.
class Window {
 public:
  static constexpr int kSlots = 64;
  virtual ~Window() = default;
  // The buffer of `rank`, aligned to 64 bytes: the same memory whoever asks.
  virtual std::span<std::byte> of(Rank rank) = 0;
  // Publishes `value` in this node's own slot; what was written before is visible to who sees it.
  // Values of a slot never decrease.
  virtual void post(int slot, uint64_t value) = 0;
  // Waits until the slot of `rank` is at least `value`: kDone, kTimedOut or kPeerLost.
  virtual Completion await(Rank rank, int slot, uint64_t value, double timeout_s) = 0;
  // The slot itself, to be read with acquire by who cannot spare a call; nullptr where time passes
  // only in calls.
  virtual const std::atomic<uint64_t>* slot(Rank /*rank*/, int /*slot*/) { return nullptr; }
};

struct Traffic {
  uint64_t bytes_sent = 0;
  uint64_t messages_sent = 0;
};

class Endpoint {
 public:
  virtual ~Endpoint() = default;
  virtual Rank rank() const = 0;
  virtual int size() const = 0;
  virtual const std::string& role(Rank rank) const = 0;

  virtual Handle send(Rank to, Tag tag, std::span<const std::byte> data) = 0;
  virtual Handle receive(Rank from, Tag tag, std::span<std::byte> buffer) = 0;  // or kAnyRank

  // Ends the handle unless it returns kTimedOut.
  virtual Completion wait(Handle& handle, double timeout_s) = 0;
  // Waits for the first of the pending handles (others are skipped): ends that one and returns its
  // index with its completion; kTimedOut leaves all of them, with index == handles.size(), and
  // comes at once if none is pending.
  virtual std::pair<size_t, Completion> wait_any(std::span<Handle> handles, double timeout_s) = 0;
  // Never blocks: the completion if it has ended, and then ends the handle.
  virtual std::optional<Completion> test(Handle& handle) = 0;
  // Never blocks, and leaves the buffer free. kCancelled, or how it had ended already; kDone,
  // too, if it could not be called back.
  virtual Completion cancel(Handle& handle) = 0;

  // Collective over all nodes: opens a window of `bytes` on each, or returns nullptr on every node
  // when not all of them share a host. The endpoint owns it.
  virtual Window* open_window(size_t bytes, double timeout_s) = 0;

  // The pieces in which bulk to or from `peer` gets through fastest when the receiver works on each
  // as it arrives. Both sides say the same.
  virtual size_t piece_bytes(Rank peer) const = 0;
  // How much of a large exchange with `peer` to finish before the rest of it begins, so that it is
  // still in a cache that both share; 0: nothing is gained by that. Both sides say the same.
  virtual size_t block_bytes(Rank peer) const = 0;

  virtual Traffic traffic() const = 0;
  // Bytes sent to each rank so far.
  virtual std::vector<uint64_t> bytes_by_peer() const = 0;
};

// Counts what a computation costs: floating-point operations, bytes of memory moved, passes over a
// batch that it begins, layers that these passes run, forward or backward, and whole steps.
struct Work {
  double flops = 0;
  double memory_bytes = 0;
  double passes = 0;
  double layers = 0;
  double steps = 0;  // of training that it begins
  // The memory that this work and all that shares a cache with it range over, where that is more
  // than it moves itself. 0: it is not.
  double range_bytes = 0;
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual double now() const = 0;  // seconds since the fabric started
  virtual void sleep(double seconds) = 0;
  // States that `work` has been done. Real fabrics took that time already and only look whether
  // they should stop; on a virtual one time passes now.
  virtual void charge(const Work& work) = 0;
  // A step of training begins, or a chunk of samples that is measured: on a virtual fabric whether
  // it is a slow one is drawn now, and holds until the next of either. For a node that never says
  // so it is drawn for each charge.
  virtual void begin_step() = 0;
  virtual void begin_chunk() = 0;
  virtual double load() const = 0;    // CPU occupancy of this node since its start, 0 to 1
  virtual double busy_s() const = 0;  // CPU seconds of this node, measured or simulated
  // Returns the seconds that this node has spent polling for messages. In a simulation polling
  // takes time, whatever else the node is doing.
  virtual double polled_s() const { return 0; }
  virtual bool simulated() const = 0;
  // States that this node has ended its part of the run. What it does from now on, such as a test
  // of the result, still takes time in a simulation, but no energy.
  virtual void end_part() {}
  // Left out when only costs count: buffers are never read or written, payloads do not travel, but
  // for those of purpose kControl.
  virtual Arithmetic arithmetic() const = 0;
};

struct MemberEvent {
  enum class Kind { kLost, kJoined } kind = Kind::kLost;
  Rank rank = kAnyRank;
  uint32_t incarnation = 0;  // of the member that was lost or that joined
};

class Membership {
 public:
  virtual ~Membership() = default;
  virtual bool alive(Rank rank) const = 0;
  virtual uint32_t incarnation(Rank rank) const = 0;    // 0 at first, one more at each restart
  virtual std::optional<MemberEvent> next_event() = 0;  // in order, each once; never blocks
  // Synchronous strategies cannot go on without a member, whoever they wait for just now: with
  // `on`, the loss of any member ends every wait, also those that begin later, with kPeerLost and
  // the rank that was lost first.
  virtual void end_waits_on_any_loss(bool on) = 0;
  // Lets the loss of one of `ranks` end every wait, and that of others none: for nodes that go on
  // without members that are lost already.
  virtual void end_waits_on_loss_of(std::vector<Rank> ranks) = 0;
};

class Node {
 public:
  virtual ~Node() = default;
  virtual Endpoint& endpoint() = 0;
  virtual Clock& clock() = 0;
  virtual Membership& membership() = 0;
  // How long a wait may last where the caller has no reason for another limit.
  virtual double timeout_s() const = 0;
};

}  // namespace tutti

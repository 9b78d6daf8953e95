// A send or receive under way, and the table of them. Operations are reused, and a handle carries
// its operation's generation, so that starting one takes no memory and a stale handle is noticed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/error.h"
#include "fabric/node.h"

namespace tutti::process {

struct Envelope;

struct Operation {
  enum class Phase : uint8_t {
    kFree,
    kQueued,     // a send that waits for its connection, or for a free offer
    kPosted,     // in UCX's hands
    kDeferred,   // a receive that we match ourselves: from anybody, or behind such a one
    kMatched,    // a receive that met the notice of a large message, about to fetch it
    kOffered,    // a large send that waits for its receiver to fetch it
    kPulling,    // a receive whose large message its sender sends by UCX, piece by piece
    kStranded,   // fetching failed: its sender is dying, and the launcher will say so
    kWithdrawn,  // a receive that UCX gave back on request
    kEnded,
  };

  uint64_t serial = 0;  // in the order they began
  Phase phase = Phase::kFree;
  bool sending = false;
  Rank peer = kAnyRank;    // as the caller named it
  Rank source = kAnyRank;  // of a receive: who the message is from, once known
  Tag tag;
  std::byte* data = nullptr;
  size_t bytes = 0;
  size_t total = 0;              // of a message that is pulled; 0: its sender has called it back
  size_t moved = 0;              // how much of it has been received, or sent
  Envelope* envelope = nullptr;  // in UCX's hands, which will call back
  uint64_t notice = 0;           // the upper tag bits that name an offer
  Completion result;
  uint32_t index = 0;
  uint32_t generation = 0;

  bool pending() const { return phase != Phase::kEnded; }
  void end(State state, size_t moved_bytes) {
    result = {state, source != kAnyRank ? source : peer, tag, moved_bytes};
    phase = Phase::kEnded;
  }
};

class OperationTable {
 public:
  Operation& take() {
    if (free_.empty()) {
      const auto index = static_cast<uint32_t>(operations_.size());
      operations_.emplace_back().index = index;
      free_.push_back(index);
    }
    Operation& operation = operations_[free_.back()];
    free_.pop_back();
    const uint32_t index = operation.index;
    const uint32_t generation = operation.generation + 1;
    operation = Operation{};
    operation.index = index;
    operation.generation = generation;
    return operation;
  }

  void give_back(Operation& operation) {
    operation.phase = Operation::Phase::kFree;
    free_.push_back(operation.index);
  }

  static uint64_t id_of(const Operation& operation) {
    return uint64_t{operation.generation} << 32 | operation.index;
  }

  Operation& find(const Handle& handle) {
    const auto index = static_cast<uint32_t>(handle.id());
    TUTTI_CHECK(handle.pending() && index < operations_.size());
    Operation& operation = operations_[index];
    TUTTI_CHECK(id_of(operation) == handle.id() && operation.phase != Operation::Phase::kFree);
    return operation;
  }

  template <class Function>
  void for_each_pending(Function function) {
    for (Operation& operation : operations_)
      if (operation.phase != Operation::Phase::kFree && operation.pending()) function(operation);
  }

 private:
  std::deque<Operation> operations_;  // addresses stay: UCX keeps them
  std::vector<uint32_t> free_;
};

}  // namespace tutti::process

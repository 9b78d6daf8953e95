// What travels down a chain of replicas: the inputs of a shard's server, in the order in which its
// head took them, each with the gradient of the update that it brought about.
//
// A replica that executes the same inputs in the same order is in the same state as the head. The
// gradients that a step gathers stay with the head: their sum comes with the input that closes it.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "strategies/parameter_server/member.h"
#include "strategies/parameter_server/messages.h"

namespace tutti::parameter_server {

inline constexpr uint32_t kChainMagic = 0x32435054;  // "TPC2"

struct Entry {
  enum Kind : uint32_t {
    kRequest = 1,   // of `worker`; if it pushes, with all of its gradients
    kLost,          // `worker`
    kJoined,        // `worker`, in this incarnation
    kExpelled,      // `worker`, which sent nonsense
    kDelivered,     // gradients of `worker` that the head before had received, once more
    kForgotten,     // gradients of `worker` that the head before had received, never again
    kBulletin,      // `request` is the coordinator's; what it decided follows
    kClosed,        // everybody has said goodbye and was answered
    kAdded,         // the chain is `members` now: the last one is new
    kOrder,         // the chain is `members` when all have this entry: some of them, in any order
    kState,         // to a new member: what all entries up to `index` have led to
    kAcknowledged,  // upwards: the rest of the chain has all entries up to `index`
    kKinds,
  };
  uint32_t magic = kChainMagic;
  uint32_t kind = 0;
  int32_t shard = 0;
  int32_t worker = 0;
  uint64_t index = 0;        // 1, 2, ... in each shard
  uint64_t elements = 0;     // floats that follow: of a gradient, or of a state
  uint64_t bytes = 0;        // that follow besides: the keys of a gradient, the rest of a state
  uint32_t updated = 0;      // 1: this brought about an update
  uint32_t incarnation = 0;  // kJoined
  uint32_t epoch = 0;        // of the chain, as its sender sees it; of the new one, with members
  uint32_t count = 0;
  std::array<Member, kMostMembers> members = {};
  Request request = {};

  bool has_order() const { return kind == kAdded || kind == kOrder; }
  Order order() const { return {epoch, {members.begin(), members.begin() + count}}; }
  void set(const Order& order);
};

// What a server can tell a sensible entry by.
struct EntryLimits {
  int workers = 0;
  int shards = 0;
  uint64_t elements = 0;  // of the shard
  uint64_t rows = 0;      // of a sparse model, and their width
  uint64_t row_width = 0;
  Rank first_server = 0;
  int servers = 0;
};

// Why the entry cannot be meant, or "". `bytes` is what has arrived of it.
std::string fault_of(const Entry& entry, size_t bytes, const EntryLimits& limits);

}  // namespace tutti::parameter_server

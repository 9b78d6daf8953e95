// What travels between workers and servers, besides gradients and parameters.
//
// A request goes from a worker to a server, or from the first server, which coordinates, to the
// others. It is one fixed block, checked before anything is done with it; a push's gradients follow
// as messages of their own, whose sizes both sides know from the layout. Everything is little
// endian, as on every machine this runs on.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "fabric/tag.h"
#include "strategies/evaluation_share.h"
#include "strategies/parameter_server/member.h"
#include "strategies/parameter_server/tags.h"

namespace tutti::parameter_server {

inline constexpr uint32_t kMagic = 0x31535054;  // "TPS1"
inline constexpr int64_t kMostBound = 1 << 20;  // no bound at all
inline constexpr int64_t kMostForgiven = int64_t{1} << 40;

// What a worker computes between two pulls: part `part` of `parts` of each of the `steps` global
// batches from `step` on.
struct Hand {
  int32_t epoch = 0;
  int32_t step = 0;  // within the epoch
  int32_t steps = 0;
  int32_t part = 0;
  int32_t parts = 0;
  friend bool operator==(const Hand&, const Hand&) = default;
  // In this order gradients are added up, so that a sum does not depend on who was first.
  friend auto operator<=>(const Hand&, const Hand&) = default;  // NOLINT(modernize-use-nullptr)
};

struct Request {
  enum Flag : uint32_t {
    kPush = 1,        // gradients follow
    kPull = 2,        // asks for a reply
    kInParts = 4,     // push: layer by layer, as the backward pass makes them ready
    kHeaderOnly = 8,  // pull: what to do next, without parameters
    kSnapshot = 16,   // pull: the parameters that were kept for evaluation `share.id`
    kFinal = 32,      // pull: nothing more will be pushed
    kEvaluated = 64,  // `share` is filled in
    kLeave = 128,     // its loss is not a number any more
    kDecision = 256,  // of the coordinator: which gradients make up step `version`
    kKeep = 512,    // of the coordinator: keep the parameters of `version` for evaluation share.id
    kAhead = 1024,  // pull: for the step after the one whose gradient is under way
    kGoodbye = 2048,    // it has the final parameters
    kRows = 1 << 16,    // pull: of a sparse model, the rows whose keys follow
    kOutbox = 1 << 20,  // push: the gradients lie at `offset` of its window, nothing follows
    kReads = 1 << 21,   // pull: it can read parameters from the server's window
    kLayers = 1 << 22,  // pull: parameters one piece after the other, first layers first
    kWhere = 1 << 23,   // by itself: whether the server has a part in this shard's chain
    kSecure = 1 << 24,  // by itself: what lies in its window is about to be overwritten
    kKnownFlags = 4095 | kRows | kOutbox | kReads | kLayers | kSecure,
  };
  uint32_t magic = kMagic;
  uint32_t flags = 0;
  uint64_t sequence = 0;  // requests of this worker to this server so far, this one included
  int64_t clock = 0;      // pushes of this worker before this request
  int64_t version = 0;    // updates in the parameters that the worker has computed on
  int64_t wanted = 0;     // pull: not with fewer updates than this
  int64_t bound = 0;      // pull: how far this worker may be ahead, as it was told last
  int64_t forgiven = 0;   // clocks that it need not catch up with, as it was told last
  double occupancy = -1;  // share of its time since the last request that it computed; -1: unknown
  double read_s = 0;      // push: when those parameters were read
  Hand hand;              // push: what the gradient was computed on, or its last part
  int32_t steps = 0;      // push: how many steps' gradients it sums up
  int32_t count = 0;      // decision: how many gradients
  int32_t shard = 0;      // which part of the parameters it is about
  int32_t keys = 0;       // sparse: how many keys follow, and of a push as many rows
  uint32_t epoch = 0;     // of the shard's chain, as far as the worker has heard
  int64_t samples = 0;    // push: in all of them
  int64_t offset = 0;     // push: kOutbox
  EvaluationShare share;
};

struct Reply {
  enum Kind : uint32_t {
    kCompute = 1,  // `hand`
    kEvaluate,     // `task`
    kRepeat,       // `hand`, which its worker left behind, for this server alone
    kFinish,       // there is nothing more to do: ask for the final parameters
    kDone,         // these are the final parameters
    kRefused,      // the request made no sense
    kDiverged,     // some worker's loss is not a number any more
  };
  uint32_t magic = kMagic;
  uint32_t kind = kCompute;
  uint64_t sequence = 0;  // of the request
  uint64_t elements = 0;  // of the parameters that follow, or that lie
  int64_t offset = -1;    // here in the server's window
  int64_t version = 0;    // updates in them
  int64_t oldest = 0;     // pushes of the slowest worker in them
  int64_t accounted = 0;  // pushes of this worker in them, or dropped
  int64_t bound = 0;
  int64_t forgiven = 0;  // clocks that this worker need not catch up with, in all
  int64_t samples = 0;   // of all workers, in them
  double rate = 0;       // for the first step of `hand`
  Hand hand;
  int32_t unused = 0;  // instead of padding
  EvaluationTask task;
};

// One gradient of a decided step.
struct Decided {
  Hand hand;
  int32_t worker = 0;
};

// Who holds a shard now: from its head to everybody, after each change; and to a worker that asks
// (kWhere), from any member. Without members: not the server that sends it.
struct Notice {
  uint32_t magic = kMagic;
  int32_t shard = 0;
  uint32_t epoch = 0;
  uint32_t led_since = 0;  // the epoch since which its head has been that
  uint32_t count = 0;
  uint32_t over = 0;  // 1: training is over, nobody will ask about it any more
  std::array<Member, kMostMembers> members = {};

  Order order() const { return {epoch, {members.begin(), members.begin() + count}}; }
};

// What a server can tell a sensible request by.
struct RequestLimits {
  int workers = 0;
  Rank coordinator = 0;
  int successors = 0;  // servers after the coordinator that may become it
  int shards = 1;
  int64_t version = 0;  // of its parameters
  uint64_t rows = 0;    // of a sparse model; 0: a dense one
};

// Why the request cannot be meant, or "". `bytes` is what has arrived of it, and of the `count`
// gradients that follow a decision in the same message.
std::string fault_of(const Request& request, size_t bytes, Rank from, const RequestLimits& limits);
// The same for what a decision consists of.
std::string fault_of(std::span<const Decided> decided, int workers);
// The same for a reply to request `sequence` that may carry `elements` parameters.
std::string fault_of(const Reply& reply, size_t bytes, uint64_t sequence, uint64_t elements);

// The same for a notice of `from`.
std::string fault_of(const Notice& notice, size_t bytes, Rank from, Rank first_server, int servers,
                     int shards);

}  // namespace tutti::parameter_server

// Sends and receives of all nodes: from the envelope to the copied payload, but not a second of
// time, which is the business of Transfers, and no waiting, which is the world's.
//
// Up to kEagerBytes a message sets out at once with a copy of its payload; beyond that its envelope
// waits at the receiver and the bytes set out when a receive takes it. A peer's messages with one
// tag form a stream: they are offered to receives in the order sent, and completed in the order
// sent, even if a small one has landed before the large one ahead of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "fabric/node.h"
#include "fabric/virtual/matching.h"
#include "fabric/virtual/transfers.h"

namespace tutti::simulation {

struct Operation {
  bool is_send = false;
  bool watched = false;  // its node is blocked until this, among others, has ended
  Completion completion;
  std::byte* buffer = nullptr;  // receive: where to
  size_t capacity = 0;
  uint64_t message = 0;  // send: its message until it ends; receive: the one that it has taken
};

class Mail {
 public:
  // `wake` is told a rank when a watched operation of it has ended.
  Mail(int nodes, bool cost_only, Transfers& transfers, std::function<void(Rank)> wake);

  uint64_t send(Rank from, Rank to, Tag tag, std::span<const std::byte> data);
  uint64_t receive(Rank at, Rank from, Tag tag, std::span<std::byte> buffer);
  uint64_t fail_send(Rank from, Rank to, Tag tag);  // an operation that has ended with kPeerLost

  Operation* find(Rank at, uint64_t operation);
  Completion cancel(Rank at, uint64_t operation);  // also takes the completion of one that ended

  void landed(uint64_t message);
  bool under_way_from(Rank rank) const;  // whether something is that it has sent and done with

  // Two nodes that `lost` pairs have lost each other: ends what they had under way. What had
  // arrived can still be received.
  void sever(const std::function<bool(Rank, Rank)>& lost);
  void forget(Rank rank);       // a crashed node: its operations and what waits for it
  void forget_from(Rank rank);  // it has come back: what its former self had sent

 private:
  struct Message {
    Rank from = 0;
    Rank to = 0;
    Tag tag;
    size_t bytes = 0;
    bool eager = false;
    bool landed = false;
    bool offered = false;                  // to the receiver's matching
    std::unique_ptr<std::byte[]> payload;  // eager
    const std::byte* source = nullptr;     // otherwise the sender's own buffer
    uint64_t send = 0;                     // the unfinished send, unless eager
    uint64_t receive = 0;                  // who has taken it
  };
  struct Stream {
    std::list<uint64_t> coming;   // not yet offered
    std::vector<uint64_t> taken;  // by a receive, but not completed
  };
  struct Box {  // of one node
    std::unordered_map<uint64_t, Operation> operations;
    std::unordered_map<uint64_t, Stream> streams;  // towards this node, by peer and tag
    Matching matching;
  };
  Box& box(Rank rank) { return boxes_[static_cast<size_t>(rank)]; }
  // When only costs count, what strategies tell each other still has to arrive.
  bool travels(Tag tag) const { return !cost_only_ || tag.purpose() == Purpose::kControl; }
  static uint64_t stream_key(const Message& message);
  void advance(Rank to, uint64_t key);
  void take(Stream& stream, uint64_t id, uint64_t receive);
  void complete(uint64_t id);
  void end(Rank at, uint64_t operation, State state, Rank peer, size_t bytes);
  void drop(uint64_t id);
  void give_back(uint64_t id);
  void repost(Rank at, uint64_t receive);
  void sever_receives(Rank at, const std::function<bool(Rank, Rank)>& lost);
  std::vector<uint64_t> messages_where(const std::function<bool(const Message&)>& wanted) const;

  bool cost_only_;
  Transfers& transfers_;
  std::function<void(Rank)> wake_;
  std::vector<Box> boxes_;
  std::unordered_map<uint64_t, Message> messages_;
  uint64_t next_ = 1;
};

}  // namespace tutti::simulation

// Large messages between processes of one machine: the sender puts an offer on the board and UCX
// carries a notice of it, in order with all other messages; the receiver whose receive matches the
// notice claims the offer and fetches the bytes out of the sender's memory with one copy, which
// needs nothing from a sender that computes. Where the system forbids it, the sender sends by UCX.
//
// UCX has a rendezvous too, but it cannot be cancelled: a receiver might read a buffer that the
// sender has been given back. Here one word decides: the sender can revoke an offer until the
// receiver has said that it has all of it, and what was read of a revoked one counts for nothing.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fabric/process/board.h"
#include "fabric/process/operation.h"

namespace tutti::process {

// Pieces of what UCX has to send. Two under way fill the receive queue, and no more: that is what a
// cancel has to copy.
inline constexpr size_t kLargePieceBytes = 8 * kEagerBytes;

class Rendezvous {
 public:
  Rendezvous(Board& board, Rank rank);

  // The sender's side. open() fills in operation.notice; false: no offer is free now.
  bool open(Operation& operation);
  // True: the receiver will not get it, even if it has begun to fetch. False: it has it.
  bool revoke(const Operation& operation);
  bool taken(const Operation& operation) const;
  void close(const Operation& operation);  // the offer may be used again
  // Cheap: false as long as no offer of this node was taken since the last call.
  bool any_taken();
  bool news() const { return board_.taken(rank_).load() != taken_seen_; }  // without taking note

  // The receiver's side.
  enum class Fetch {
    kDone,
    kRevoked,    // the message was cancelled: as if it had never been sent
    kTruncated,  // it is larger than the buffer, and gone
    kForbidden,  // claimed, but the system does not let us read: ask the sender to send it
    kGone,       // claimed, but the sender is dying
  };
  Fetch fetch(Rank from, Operation& operation, size_t& bytes);
  // All of it is here. False: too late, it was revoked.
  bool confirm(Rank from, const Operation& operation);

 private:
  Offer& mine(const Operation& operation) const;

  Board& board_;
  Rank rank_;
  pid_t pid_;
  bool forbidden_ = false;
  uint32_t taken_seen_ = 0;
  std::vector<uint32_t> free_;  // used in turn, so that generations differ for as long as possible
};

}  // namespace tutti::process

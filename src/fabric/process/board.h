// The board: a few words of memory that the launcher and all its nodes share, made before the first
// fork, so that looking whether something happened costs a load and no system call.
//
// It is anonymous memory: it is gone when the last process is, however that one dies. Nothing that
// a node needs for correctness is only here; the order of events is that of the control messages.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/tag.h"

namespace tutti::process {

// One large message on offer: its bytes stay in the sender's memory until the receiver fetches
// them. The word decides, without the other side's help, between a fetch and a cancellation.
struct alignas(64) Offer {
  enum State : uint32_t { kFree, kOpen, kClaimed, kTaken };
  std::atomic<uint64_t> word{0};  // generation << 8 | state
  uint64_t address = 0;           // in the sender's memory
  uint64_t bytes = 0;
  uint64_t tag = 0;
  int32_t to = kAnyRank;
  int32_t pid = 0;  // whose memory: a rank's later incarnation is another process
};

class Board {
 public:
  static constexpr uint32_t kOfferBits = 9;
  static constexpr uint32_t kOffers = 1u << kOfferBits;  // per node; further ones wait their turn

  explicit Board(int nodes);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  int nodes() const { return nodes_; }
  // Counts the control messages that were sent to everybody: another value means mail.
  std::atomic<uint32_t>& news() { return head_->news; }
  std::atomic<uint32_t>& stop() { return head_->stop; }
  int64_t start_ns() const { return head_->start_ns; }
  void set_start_ns(int64_t ns) { head_->start_ns = ns; }
  bool may_fetch() const { return head_->may_fetch; }
  void set_may_fetch(bool may) { head_->may_fetch = may; }

  Offer& offer(Rank rank, uint32_t slot) {
    return offers_[static_cast<size_t>(rank) * kOffers + slot];
  }
  // How many offers of `rank` were taken: it need not look at each while this stays the same.
  std::atomic<uint32_t>& taken(Rank rank) { return seats_[rank].taken; }

  // Counts the steps that the node has begun, so that others can say what it was doing.
  std::atomic<uint64_t>& steps(Rank rank) { return seats_[rank].steps; }

  // Where the node last ran, plus one; 0 when not known.
  std::atomic<int>& core_of(Rank rank) { return seats_[rank].core; }

  // A node that is about to block says so, then looks once more; who has something for it rings.
  void fall_asleep(Rank rank) { seats_[rank].asleep.store(1, std::memory_order_seq_cst); }
  void wake_up(Rank rank) { seats_[rank].asleep.store(0, std::memory_order_relaxed); }
  void ring(Rank rank);  // call after the change it announces; no system call if it is awake
  int bell(Rank rank) const { return bells_[static_cast<size_t>(rank)]; }
  void silence(Rank rank) const;  // empties the bell after it woke its node

 private:
  struct alignas(64) Head {
    std::atomic<uint32_t> news{0};
    std::atomic<uint32_t> stop{0};
    int64_t start_ns = 0;
    bool may_fetch = false;
  };
  struct alignas(64) Seat {
    std::atomic<uint32_t> taken{0};
    std::atomic<uint32_t> asleep{0};
    std::atomic<int> core{0};
    std::atomic<uint64_t> steps{0};
  };

  int nodes_;
  size_t bytes_;
  void* memory_;
  Head* head_;
  Seat* seats_;
  Offer* offers_;
  std::vector<int> bells_;
};

}  // namespace tutti::process

#include "fabric/process/rendezvous.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "fabric/process/channel.h"

namespace tutti::process {
namespace {

constexpr int kSlotShift = 40;
constexpr int kGenerationShift = kSlotShift + Board::kOfferBits;
constexpr uint64_t kGenerationMask = (uint64_t{1} << (63 - kGenerationShift)) - 1;

uint32_t slot_of(uint64_t notice) {
  return static_cast<uint32_t>(notice >> kSlotShift) & (Board::kOffers - 1);
}

uint64_t generation_of(uint64_t word) { return word >> 8; }
uint32_t state_of(uint64_t word) { return static_cast<uint32_t>(word & 0xff); }
uint64_t word_of(uint64_t generation, Offer::State state) { return generation << 8 | state; }

bool named_by(uint64_t word, uint64_t notice) {
  return (generation_of(word) & kGenerationMask) == (notice >> kGenerationShift & kGenerationMask);
}

enum class Read { kDone, kForbidden, kGone };

Read read_memory(pid_t pid, uint64_t address, std::span<std::byte> buffer) {
  // In pieces, so that a sender that dies in between is noticed before the end.
  constexpr size_t kPiece = size_t{16} << 20;
  size_t done = 0;
  while (done < buffer.size()) {
    const size_t piece = std::min(kPiece, buffer.size() - done);
    const iovec local{buffer.data() + done, piece};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it points into another process
    const iovec remote{reinterpret_cast<void*>(address + done), piece};
    const ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (got <= 0) return errno == EPERM || errno == ENOSYS ? Read::kForbidden : Read::kGone;
    done += static_cast<size_t>(got);
  }
  return Read::kDone;
}

}  // namespace

Rendezvous::Rendezvous(Board& board, Rank rank)
    : board_(board), rank_(rank), pid_(getpid()), forbidden_(!board.may_fetch()) {
  for (uint32_t slot = Board::kOffers; slot > 0; --slot) free_.push_back(slot - 1);
  taken_seen_ = board_.taken(rank).load(std::memory_order_acquire);
}

Offer& Rendezvous::mine(const Operation& operation) const {
  return board_.offer(rank_, slot_of(operation.notice));
}

bool Rendezvous::open(Operation& operation) {
  if (free_.empty()) return false;
  // The oldest free one first: the list is short, and a move of 2 KiB is nothing beside a message.
  const uint32_t slot = free_.front();
  free_.erase(free_.begin());
  Offer& offer = board_.offer(rank_, slot);
  const uint64_t generation = generation_of(offer.word.load(std::memory_order_relaxed)) + 1;
  offer.address = reinterpret_cast<uint64_t>(operation.data);
  offer.bytes = operation.bytes;
  offer.tag = operation.tag.bits();
  offer.to = operation.peer;
  offer.pid = pid_;
  offer.word.store(word_of(generation, Offer::kOpen), std::memory_order_release);
  operation.notice = kNoticeFlag | (generation & kGenerationMask) << kGenerationShift |
                     uint64_t{slot} << kSlotShift;
  return true;
}

bool Rendezvous::revoke(const Operation& operation) {
  Offer& offer = mine(operation);
  uint64_t word = offer.word.load(std::memory_order_acquire);
  while (state_of(word) == Offer::kOpen || state_of(word) == Offer::kClaimed)
    if (offer.word.compare_exchange_weak(word, word_of(generation_of(word), Offer::kFree),
                                         std::memory_order_acq_rel))
      return true;
  return false;
}

bool Rendezvous::taken(const Operation& operation) const {
  return state_of(mine(operation).word.load(std::memory_order_acquire)) == Offer::kTaken;
}

void Rendezvous::close(const Operation& operation) {
  Offer& offer = mine(operation);
  // One generation on: a receiver that still holds the notice finds nothing.
  const uint64_t generation = generation_of(offer.word.load(std::memory_order_relaxed)) + 1;
  offer.word.store(word_of(generation, Offer::kFree), std::memory_order_release);
  free_.push_back(slot_of(operation.notice));
}

bool Rendezvous::any_taken() {
  const uint32_t now = board_.taken(rank_).load(std::memory_order_acquire);
  if (now == taken_seen_) return false;
  taken_seen_ = now;
  return true;
}

Rendezvous::Fetch Rendezvous::fetch(Rank from, Operation& operation, size_t& bytes) {
  Offer& offer = board_.offer(from, slot_of(operation.notice));
  uint64_t word = offer.word.load(std::memory_order_acquire);
  if (state_of(word) != Offer::kOpen || !named_by(word, operation.notice)) return Fetch::kRevoked;
  // Read before claiming: afterwards a restarted sender may write here. A claim that succeeds
  // proves that what was read belongs together.
  const pid_t pid = offer.pid;
  const uint64_t address = offer.address;
  bytes = offer.bytes;
  if (offer.to != rank_ || offer.tag != operation.tag.bits()) return Fetch::kRevoked;
  if (!offer.word.compare_exchange_strong(word, word_of(generation_of(word), Offer::kClaimed),
                                          std::memory_order_acq_rel))
    return Fetch::kRevoked;
  if (bytes > operation.bytes)
    return confirm(from, operation) ? Fetch::kTruncated : Fetch::kRevoked;
  if (forbidden_) return Fetch::kForbidden;
  const Read read = read_memory(pid, address, {operation.data, bytes});
  const uint64_t claimed = word_of(generation_of(word), Offer::kClaimed);
  if (read == Read::kGone)  // or its owner has it back
    return offer.word.load(std::memory_order_acquire) == claimed ? Fetch::kGone : Fetch::kRevoked;
  if (read == Read::kForbidden) {
    forbidden_ = true;
    return Fetch::kForbidden;
  }
  return confirm(from, operation) ? Fetch::kDone : Fetch::kRevoked;
}

bool Rendezvous::confirm(Rank from, const Operation& operation) {
  Offer& offer = board_.offer(from, slot_of(operation.notice));
  uint64_t word = offer.word.load(std::memory_order_acquire);
  if (state_of(word) != Offer::kClaimed || !named_by(word, operation.notice)) return false;
  if (!offer.word.compare_exchange_strong(word, word_of(generation_of(word), Offer::kTaken),
                                          std::memory_order_acq_rel))
    return false;
  board_.taken(from).fetch_add(1, std::memory_order_acq_rel);
  board_.ring(from);
  return true;
}

}  // namespace tutti::process

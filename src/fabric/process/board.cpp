#include "fabric/process/board.h"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "core/error.h"

namespace tutti::process {

Board::Board(int nodes) : nodes_(nodes) {
  const auto count = static_cast<size_t>(nodes);
  bytes_ = sizeof(Head) + count * sizeof(Seat) + count * kOffers * sizeof(Offer);
  memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory_ == MAP_FAILED)
    throw Error(std::string("cannot share memory among the nodes: ") + std::strerror(errno));
  // Fresh anonymous memory is zero, which is the initial state of every word in it.
  head_ = static_cast<Head*>(memory_);
  seats_ = reinterpret_cast<Seat*>(head_ + 1);
  offers_ = reinterpret_cast<Offer*>(seats_ + count);
  for (int rank = 0; rank < nodes; ++rank) {
    const int bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (bell < 0) throw Error(std::string("cannot make an event fd: ") + std::strerror(errno));
    bells_.push_back(bell);
  }
}

Board::~Board() {
  for (const int bell : bells_) close(bell);
  munmap(memory_, bytes_);
}

void Board::ring(Rank rank) {
  // Pairs with fall_asleep: either we see it asleep, or it sees our change when it looks again.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!seats_[rank].asleep.load(std::memory_order_relaxed)) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(bell(rank), &one, sizeof one);
}

void Board::silence(Rank rank) const {
  uint64_t count;
  [[maybe_unused]] const ssize_t got = read(bell(rank), &count, sizeof count);
}

}  // namespace tutti::process

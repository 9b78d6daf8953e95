#include "fabric/process/placement.h"

namespace tutti::process {
namespace {

constexpr int64_t kLookEveryNs = 100'000;
constexpr int64_t kMoveEveryNs = 10'000'000;

}  // namespace

Placement::Placement(Board& board, Rank rank) : board_(board), rank_(rank) {
  if (sched_getaffinity(0, sizeof allowed_, &allowed_) == 0) cores_ = CPU_COUNT(&allowed_);
}

void Placement::consider(int64_t now_ns) {
  if (board_.nodes() > cores_ || now_ns < next_ns_) return;
  next_ns_ = now_ns + kLookEveryNs;
  const int here = sched_getcpu();
  if (here < 0 || here >= CPU_SETSIZE) return;
  board_.core_of(rank_).store(here + 1, std::memory_order_relaxed);
  cpu_set_t free = allowed_;
  bool shared = false;
  for (Rank other = 0; other < board_.nodes(); ++other) {
    const int core = board_.core_of(other).load(std::memory_order_relaxed) - 1;
    if (other == rank_ || core < 0) continue;
    CPU_CLR(static_cast<size_t>(core), &free);
    shared = shared || core == here;
  }
  if (!shared || CPU_COUNT(&free) == 0) return;
  next_ns_ = now_ns + kMoveEveryNs;
  // The move happens at the first call; the second gives the choice back to the scheduler.
  sched_setaffinity(0, sizeof free, &free);
  board_.core_of(rank_).store(sched_getcpu() + 1, std::memory_order_relaxed);
  sched_setaffinity(0, sizeof allowed_, &allowed_);
}

}  // namespace tutti::process

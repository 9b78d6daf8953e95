#include "bench/peers/local_group.h"

#include <fmt/format.h>
#include <immintrin.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <system_error>

#include "bench/peers/peer.h"

namespace peer {
namespace {

std::vector<size_t> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  std::vector<size_t> cores;
  for (size_t core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

// How often to look before yielding: about 20 us where every process has a core, longer than any
// barrier takes then; hardly at all where the peer needs this core to arrive.
int spins_before_yield(int processes) {
  return static_cast<size_t>(processes) <= usable_cores().size() ? 500 : 10;
}

constexpr int kEagerLooks = 32;  // without a pause: with more, who is to write gets the line later

[[noreturn]] void run_child(pid_t parent, const std::function<void()>& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the line above
  int code = 0;
  try {
    body();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    code = 1;
  }
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace

SharedMemory::SharedMemory(size_t bytes) : bytes_(bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  data_ = static_cast<std::byte*>(memory);
}

SharedMemory::~SharedMemory() { munmap(data_, bytes_); }

LocalGroup::LocalGroup(int rank, int size, int most, SharedMemory& memory)
    : rank_(rank),
      size_(size),
      most_(most),
      spins_(spins_before_yield(size)),
      arrivals_(reinterpret_cast<Arrival*>(memory.data())),
      times_us_(
          reinterpret_cast<double*>(memory.data() + static_cast<size_t>(size) * sizeof(Arrival))) {}

void LocalGroup::pin() const {
  const std::vector<size_t> cores = usable_cores();
  if (static_cast<size_t>(size_) > cores.size()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cores[static_cast<size_t>(rank_)], &set);
  sched_setaffinity(0, sizeof(set), &set);
}

void LocalGroup::barrier() {
  const unsigned turn = ++epoch_ % kTurns;
  arrivals_[rank_].turns[turn].count.store(epoch_, std::memory_order_release);
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    const std::atomic<unsigned>& theirs = arrivals_[peer].turns[turn].count;
    for (int spins = 0; theirs.load(std::memory_order_acquire) < epoch_; ++spins) {
      if (spins < kEagerLooks) continue;
      if (spins < spins_)
        _mm_pause();
      else
        sched_yield();
    }
  }
}

std::vector<double> LocalGroup::measure(int repetitions, const std::function<void()>& call) {
  double* mine = times_us_ + static_cast<ptrdiff_t>(rank_) * most_;
  for (int i = 0; i < repetitions; ++i) {
    barrier();
    const double start = now_us();
    call();
    mine[i] = now_us() - start;
  }
  barrier();
  std::vector<double> samples(static_cast<size_t>(repetitions));
  for (int i = 0; i < repetitions; ++i)
    for (int peer = 0; peer < size_; ++peer)
      samples[static_cast<size_t>(i)] =
          std::max(samples[static_cast<size_t>(i)], times_us_[peer * most_ + i]);
  barrier();
  return samples;
}

int run_group(int size, int most, const std::function<void(LocalGroup&)>& body) {
  SharedMemory memory(static_cast<size_t>(size) *
                      (sizeof(LocalGroup::Arrival) + static_cast<size_t>(most) * sizeof(double)));
  const pid_t parent = getpid();
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    if (child == 0)
      run_child(parent, [&] {
        LocalGroup group(rank, size, most, memory);
        body(group);
      });
    if (child > 0) children.push_back(child);
  }
  bool failed = static_cast<int>(children.size()) < size;
  while (!children.empty()) {
    if (failed)
      for (const pid_t child : children) kill(child, SIGKILL);
    int status = 0;
    const pid_t ended = wait(&status);
    if (ended < 0) break;
    failed = failed || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    std::erase(children, ended);
  }
  return failed ? 1 : 0;
}

}  // namespace peer

// A few processes on this machine with a piece of shared memory and a barrier in it.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace peer {

// Memory shared by the processes forked after it was made; zero at first.
class SharedMemory {
 public:
  explicit SharedMemory(size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::byte* data_;
  size_t bytes_;
};

// The view of one process.
class LocalGroup {
 public:
  int rank() const { return rank_; }
  int size() const { return size_; }

  // Binds this process to a core of its own where there are enough, as mpirun does by default.
  void pin() const;

  // Returns when all have called it. Spins, and after a while yields: with more processes than
  // cores somebody else needs this one to arrive.
  void barrier();

  // One sample per repetition, in rank 0: the longest that `call` took in any process.
  std::vector<double> measure(int repetitions, const std::function<void()>& call);

 private:
  friend int run_group(int, int, const std::function<void(LocalGroup&)>&);
  struct alignas(64) Line {
    std::atomic<unsigned> count;
  };
  // Barriers take turns with the lines: who arrives at the next one does not take the line away
  // from those that still look at this one.
  static constexpr unsigned kTurns = 4;
  struct Arrival {
    Line turns[kTurns];
  };
  LocalGroup(int rank, int size, int most, SharedMemory& memory);
  int rank_, size_, most_, spins_;
  unsigned epoch_ = 0;
  Arrival* arrivals_;  // one per process
  double* times_us_;   // `most_` per process
};

// Forks `size` processes that each run `body`. They die with the caller; when one fails the others
// are ended. `most` is the largest number of repetitions that measure() will be asked for. Returns
// the exit code for main.
int run_group(int size, int most, const std::function<void(LocalGroup&)>& body);

}  // namespace peer

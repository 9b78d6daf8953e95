// Which samples each worker sees at each step.
//
// With partition = "global" the samples of a global batch depend on seed and epoch alone, so any
// number of workers sees the same global batches; a worker takes a contiguous share of each. With
// "disjoint" a worker keeps its own share of the data and reshuffles within it; with "reshuffle"
// the shares are dealt anew every epoch. In both a step takes global_batch samples in all, evenly
// from the workers, however many there are. The last batch of an epoch may be smaller; it counts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/range.h"
#include "core/schema.h"

namespace tutti {

enum class Partition { kGlobal, kDisjoint, kReshuffle };
constexpr auto words(Partition) { return WordList<3>{"global", "disjoint", "reshuffle"}; }

class Batches {
 public:
  // `train` must outlive it. Without `shuffled` samples keep their order, which costs no memory:
  // for runs in which only the sizes of the batches count.
  Batches(std::span<const uint32_t> train, Partition partition, int64_t workers, uint64_t seed,
          bool shuffled = true);
  // A copy would look into the samples of the original.
  Batches(Batches&&) = default;
  Batches& operator=(Batches&&) = default;

  // Deals out an epoch in global batches of `global_batch` samples.
  void begin_epoch(int64_t epoch, int64_t global_batch);
  int64_t steps() const;  // in this epoch

  // All the samples of step `step`, in the order of the workers.
  std::vector<uint32_t> global(int64_t step) const;
  // The share of one worker; global() is the concatenation of all shares.
  std::span<const uint32_t> share(int64_t step, int64_t worker) const;
  // Samples [within.begin, within.end) of the step ("global" only).
  std::span<const uint32_t> part(int64_t step, Range within) const;
  // How many samples the step has in all: what a mean over the global batch divides by.
  int64_t count(int64_t step) const;
  // Lane `lane` of `lanes` of the step ("global" only): lanes do not depend on the workers.
  std::span<const uint32_t> lane(int64_t step, int64_t lane, int64_t lanes) const;

 private:
  std::span<const uint32_t> samples() const;  // of this epoch, in their order
  Range span_of(int64_t step) const;  // of the samples of the epoch, counted as they are dealt

  std::span<const uint32_t> train_;
  std::vector<uint32_t> dealt_;   // "disjoint": the samples as they were dealt out once
  Partition partition_;
  int64_t workers_;
  uint64_t seed_;
  bool shuffled_;
  int64_t global_batch_ = 1;
  std::vector<uint32_t> order_;   // this epoch's samples; for disjoint shares, worker after worker
  std::vector<Range> shares_;     // of each worker in order_; empty for "global"
};

}  // namespace tutti

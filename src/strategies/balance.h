// Load-balanced synchronous steps: each worker takes as much of a global batch as it can do while
// the others do theirs (LB-BSP: Chen et al., 2020).
//
// In lockstep the slowest worker sets the pace, so with equal shares a cluster is as fast as if all
// were like it. How fast everybody was lately is exchanged every few steps, a few bytes, and all
// cut the following batches by that. The gradient is the same, whoever computes which part of it.
#pragma once

#include <memory>
#include <vector>

#include "collectives/all_reduce.h"
#include "strategies/strategy.h"

namespace tutti {

class Balance {
 public:
  // Between two exchanges. Often enough to follow a core that changes its speed within a second,
  // seldom enough that noise of single steps averages out.
  static constexpr uint64_t kStepsBetween = 4;
  // The first measurement counts in full.
  static constexpr int64_t kSettlingSteps = 2 * kStepsBetween;
  // Returns how many samples of a batch the fastest worker gets, by the speeds that the cluster
  // declares.
  static double most_samples(const PlanInput& input);

  explicit Balance(Context& context);

  // Which of `count` equal pieces of work (samples, lanes) are this worker's; equal shares at
  // first. Everybody gets at least one, or nobody would learn when it becomes fast again.
  Range part(size_t count) const;
  // This worker did `pieces` of step `step` in so much time. Tells the others when it is due, so
  // all workers have to call it at each step.
  void worked(size_t pieces, double seconds, uint64_t step);

 private:
  void exchange(uint64_t step);

  size_t me_;
  bool measured_ = false;
  std::vector<double> shares_;       // of each worker, of all work; sum to 1
  double pieces_ = 0, seconds_ = 0;  // since the last exchange
  std::vector<double> rates_;
  std::unique_ptr<AllReduce> sum_;
};

// How [0, count) is cut among workers with these shares: at least one each where there are enough.
Range part_by_shares(size_t count, std::span<const double> shares, size_t index);

}  // namespace tutti

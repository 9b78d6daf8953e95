// One node's part in training an early-exit network: forward and backward through its layers and
// its exit, and their update.
#pragma once

#include <memory>
#include <vector>

#include "collectives/all_reduce.h"
#include "core/bytes.h"
#include "strategies/early_exit/tier_answers.h"

namespace tutti {

class TierWorker : public TierAnswers {
 public:
  TierWorker(Context& context, const Tiers& tiers);

  double train(const Shares& shares, uint64_t step, float scale) override;
  void update(double rate) override;

 private:
  std::vector<Slice> slices_of(const Shares& shares) const;
  double exit_loss(std::span<const float> output, float scale, uint64_t step);
  void take_back(std::span<const float> output, uint64_t step);
  void backward(std::span<const Slice> slices, uint64_t step);
  void sum_devices(uint64_t step);

  Layout layout_;
  std::unique_ptr<Optimizer> optimizer_, head_optimizer_;
  std::unique_ptr<AllReduce> device_sum_;
  Buffer<float> device_gradients_;
  std::vector<float> slope_, head_slope_, score_slopes_;
};

}  // namespace tutti

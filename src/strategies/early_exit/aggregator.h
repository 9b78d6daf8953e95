// The aggregator of devices that see parts of the same samples (DDNN's local aggregator). It fuses
// their scores into one exit, and tells them which samples it answers and which they must pass on.
#pragma once

#include <optional>

#include "models/exit_head.h"
#include "strategies/early_exit/exit_node.h"

namespace tutti {

class ScoreAggregator : public ExitNode {
 public:
  ScoreAggregator(Context& context, const Tiers& tiers);

  double train(const Shares& shares, uint64_t step, float scale) override;
  void update(double rate) override;
  Verdicts judge_all(std::span<const uint32_t> samples, uint64_t step) override;
  Answered answer(std::span<const uint32_t> samples, std::span<const double> thresholds,
                  uint64_t step) override;
  std::span<float> head_parameters() override;

 private:
  // Returns the scores of the exit for so many samples.
  std::span<const float> receive_scores(size_t samples, Tag tag);
  void send_back(std::span<const float> slopes, uint64_t step);

  Fusion fusion_;
  std::optional<HeadPlace> place_;  // concatenation: an affine layer back to the classes
  std::optional<ExitHead> head_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<std::vector<float>> parts_;  // scores of each device, then their gradients
  std::vector<float> fused_, slopes_, head_slope_;
  std::vector<std::byte> answers_;
};

}  // namespace tutti

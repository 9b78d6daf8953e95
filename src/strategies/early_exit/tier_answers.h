// One node's part in using an early-exit network: chunks of samples go up through the tiers, all of
// them to be judged by every exit, or each no further than it must.
#pragma once

#include <vector>

#include "strategies/early_exit/tier_layers.h"

namespace tutti {

class TierAnswers : public TierLayers {
 public:
  using TierLayers::TierLayers;

  Verdicts judge_all(std::span<const uint32_t> samples, uint64_t step) override;
  Answered answer(std::span<const uint32_t> samples, std::span<const double> thresholds,
                  uint64_t step) override;

 private:
  std::vector<Slice> sources_of(size_t chunk, size_t samples) const;
  bool has_chunk(size_t chunk) const;
  void collect(Verdicts& verdicts, std::span<const uint32_t> samples, uint64_t step);
  void receive_some(size_t chunk, size_t most, uint64_t step);
  void answer_here(std::span<const float> output, double threshold, uint64_t step);
  void decide(std::span<const float> output, double threshold, uint64_t step);
  std::vector<int32_t> answers_of(Rank from, size_t count, uint64_t step);
  void count_answers(std::span<const uint32_t> samples, size_t chunk, std::span<const float> scores,
                     uint64_t step, ExitTally& tally);

  std::vector<std::byte> answers_;
  std::vector<float> going_on_;
};

}  // namespace tutti

// One node's part of an early-exit network: its layers, its exit, and what it gets from the tier
// below and passes on to the one above.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "collectives/all_reduce.h"
#include "core/bytes.h"
#include "models/exit_head.h"
#include "models/stage.h"
#include "strategies/early_exit/exit_node.h"

namespace tutti {

class TierWorker : public ExitNode {
 public:
  TierWorker(Context& context, const Tiers& tiers);

  double train(const Shares& shares, uint64_t step, float scale) override;
  void update(double rate) override;
  Verdicts judge_all(std::span<const uint32_t> samples, uint64_t step) override;
  Answered answer(std::span<const uint32_t> samples, std::span<const double> thresholds,
                  uint64_t step) override;
  std::span<float> head_parameters() override {
    return head_ ? head_->parameters() : std::span<float>{};
  }

  // The final test still computes with these layers: from now on with what rank 0 has of all.
  void make_whole() override {
    model_.reset();
    ExitNode::make_whole();
    model_ = context_.model.stage(tiers_.layers_of(rank_)[0]);
  }

 private:
  struct Slice {  // of what the tier below sends
    Rank from;
    size_t samples;
  };
  bool is_first() const { return tier_ == 0; }
  bool sees_part() const { return is_first() && tiers_.views; }
  const ActivationCode& code_below() const { return tiers_.codes[tier_ - 1]; }
  const ActivationCode& code() const { return tiers_.codes[tier_]; }
  void load_input(std::span<const uint32_t> samples, uint64_t step);
  std::vector<Slice> slices_of(const Shares& shares) const;
  void receive_input(std::span<const Slice> slices, Tag tag);
  void join_parts();
  // As StageModel::forward.
  std::span<const float> forward(std::optional<float> scale = {});
  std::span<const float> head_scores(std::span<const float> output);
  double exit_loss(std::span<const float> output, float scale, uint64_t step);
  void send_scores(std::span<const float> output, Tag tag);
  void pass_on(std::span<const float> output, Tag tag);
  void take_back(std::span<const float> output, uint64_t step);
  void backward(std::span<const Slice> slices, uint64_t step);
  void sum_devices(uint64_t step);
  std::vector<Slice> sources_of(size_t chunk, size_t samples) const;
  bool has_chunk(size_t chunk) const;
  void collect(Verdicts& verdicts, std::span<const uint32_t> samples, uint64_t step);
  void receive_some(size_t chunk, size_t most, uint64_t step);
  void answer_here(std::span<const float> output, double threshold, uint64_t step);
  void decide(std::span<const float> output, double threshold, uint64_t step);
  std::vector<int32_t> answers_of(Rank from, size_t count, uint64_t step);
  void count_answers(std::span<const uint32_t> samples, size_t chunk, std::span<const float> scores,
                     uint64_t step, ExitTally& tally);
  void add_exit(Work& work, double times, size_t samples) const;
  void charge_forward(size_t samples, bool with_exit);

  size_t tier_;
  std::unique_ptr<StageModel> model_;
  std::optional<HeadPlace> place_;
  std::optional<ExitHead> head_;
  Layout layout_;
  std::unique_ptr<Optimizer> optimizer_, head_optimizer_;
  std::unique_ptr<AllReduce> device_sum_;
  Buffer<float> device_gradients_;
  std::optional<Fusion> fusion_;           // above devices that see parts
  std::vector<std::vector<float>> parts_;  // by source: its input, then the gradients of that
  std::vector<float> input_, slope_, head_slope_, score_slopes_;
  std::vector<std::byte> wire_, answers_;
  std::vector<float> going_on_;
};

}  // namespace tutti

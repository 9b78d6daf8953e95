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
#include "strategies/compute.h"
#include "strategies/early_exit/tiers.h"

namespace tutti {

class TierWorker {
 public:
  TierWorker(Context& context, const Tiers& tiers);

  // Forward and backward for one batch, of which device d has shares[d]. Returns the weighted sum
  // of the losses of all exits, the same on every node.
  double train(const std::vector<std::vector<uint32_t>>& shares, uint64_t step, float scale);
  void update(double rate);

  // All samples to the last exit, with what every exit says of them: complete in the cloud alone.
  Verdicts judge_all(std::span<const uint32_t> samples, uint64_t step);

  // As in use: a sample goes no further than it must. The cloud returns what came of it; the
  // bytes are those that this node has sent.
  struct Answered {
    ExitTally tally;  // in the cloud; without losses and bytes
    double bytes_sent = 0;
  };
  Answered answer(std::span<const uint32_t> samples, std::span<const double> thresholds,
                  uint64_t step);

  // Brings the parameters of all layers to rank 0.
  void gather_parameters();

  bool is_first() const { return tier_ == 0; }
  bool is_last() const { return tier_ + 1 == tiers_.size(); }

 private:
  struct Slice {  // of what the tier below sends
    Rank from;
    size_t samples;
  };
  bool arithmetic() const { return !context_.node.clock().cost_only(); }
  const ActivationCode& code_below() const { return tiers_.codes[tier_ - 1]; }
  const ActivationCode& code() const { return tiers_.codes[tier_]; }
  void load(std::span<const uint32_t> samples, uint64_t step);
  void receive_input(std::span<const Slice> slices, Tag tag);
  // As StageModel::forward.
  std::span<const float> forward(std::optional<float> scale = {});
  std::span<const float> head_scores(std::span<const float> output);
  double exit_loss(std::span<const float> output, float scale);
  void pass_on(std::span<const float> output, Tag tag);
  void take_back(std::span<const float> output, uint64_t step);
  void backward(std::span<const Slice> slices, uint64_t step);
  void sum_devices(uint64_t step);
  double share_loss(double own, uint64_t step);
  void send_to(Rank to, Tag tag, std::span<const std::byte> bytes);
  size_t receive_from(Rank from, Tag tag, std::span<std::byte> bytes);
  Rank source_of(size_t chunk) const;
  bool has_chunk(size_t chunk) const;
  void collect(Verdicts& verdicts, std::span<const uint32_t> samples, uint64_t step);
  void receive_some(Rank from, size_t most, uint64_t step);
  void answer_here(std::span<const float> output, double threshold, uint64_t step);
  std::vector<int32_t> answers_of(Rank from, size_t count, uint64_t step);
  void count_answers(std::span<const uint32_t> samples, size_t chunk, std::span<const float> scores,
                     uint64_t step, ExitTally& tally);
  void add_exit(Work& work, double times, size_t samples) const;
  void charge_forward(size_t samples, bool with_exit);

  Context& context_;
  const Tiers& tiers_;
  size_t tier_;
  std::unique_ptr<StageModel> model_;
  std::optional<ExitHead> head_;
  Layout layout_;
  std::unique_ptr<Optimizer> optimizer_, head_optimizer_;
  std::unique_ptr<AllReduce> device_sum_;
  Buffer<float> device_gradients_;
  Batch batch_;
  std::vector<float> input_, slope_, head_slope_, score_slopes_;
  std::vector<std::byte> wire_, answers_;
  std::vector<float> going_on_;
  double sent_ = 0;  // bytes, while answering
};

}  // namespace tutti

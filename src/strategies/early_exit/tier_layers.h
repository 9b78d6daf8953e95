// The layers of one node of an early-exit network and its exit: what it gets from the tier below,
// computes, and passes on to the one above. Training and answering are built on it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "models/exit_head.h"
#include "models/stage.h"
#include "strategies/early_exit/exit_node.h"

namespace tutti {

class TierLayers : public ExitNode {
 public:
  TierLayers(Context& context, const Tiers& tiers);

  std::span<float> head_parameters() override {
    return head_ ? head_->parameters() : std::span<float>{};
  }
  void make_whole() override;

 protected:
  struct Slice {  // of what the tier below sends
    Rank from;
    size_t samples;
  };
  bool is_first() const { return tier_ == 0; }
  bool sees_part() const { return is_first() && tiers_.views; }
  const ActivationCode& code_below() const { return tiers_.codes[tier_ - 1]; }
  const ActivationCode& code() const { return tiers_.codes[tier_]; }
  void load_input(std::span<const uint32_t> samples, uint64_t step);
  void receive_input(std::span<const Slice> slices, Tag tag);
  void join_parts();
  // As StageModel::forward.
  std::span<const float> forward(std::optional<float> scale = {});
  std::span<const float> head_scores(std::span<const float> output);
  void send_scores(std::span<const float> output, Tag tag);
  void pass_on(std::span<const float> output, Tag tag);
  void add_exit(Work& work, double times, size_t samples) const;

  const size_t tier_;
  std::unique_ptr<StageModel> model_;
  std::optional<HeadPlace> place_;
  std::optional<ExitHead> head_;
  std::optional<Fusion> fusion_;           // above devices that see parts
  std::vector<std::vector<float>> parts_;  // by source: its input, then the gradients of that
  std::vector<std::byte> wire_;

 private:
  void charge_forward(size_t samples, bool with_exit);

  std::vector<float> input_, scores_;
};

}  // namespace tutti

#include "strategies/early_exit/tier_layers.h"

#include <algorithm>

#include "core/bytes.h"
#include "strategies/compute.h"

namespace tutti {

TierLayers::TierLayers(Context& context, const Tiers& tiers)
    : ExitNode(context, tiers),
      tier_(tiers.tier_of(rank_)),
      model_(context.model.stage(tiers.layers_of(rank_)[0])),
      place_(tiers.head_of(rank_)) {
  if (place_) {
    const size_t beyond = context.model.architecture().parameters.size() + 2 * place_->number;
    head_.emplace(place_->values, tiers.classes, context.task.seed, static_cast<uint32_t>(beyond),
                  arithmetic());
  }
  if (tier_ == 1 && tiers.views) fusion_.emplace(tiers.fuse_features, *tiers.views, tiers.features);
}

// The final test still computes with these layers: from now on with what rank 0 has of all.
void TierLayers::make_whole() {
  model_.reset();
  ExitNode::make_whole();
  model_ = context_.model.stage(tiers_.layers_of(rank_)[0]);
}

// A device that sees parts gets its own view of the samples only.
void TierLayers::load_input(std::span<const uint32_t> samples, uint64_t step) {
  load(samples, step);
  if (!sees_part()) return;
  arithmetic().perform(
      [&] { batch_.features = tiers_.views->cut(static_cast<size_t>(rank_), batch_.features); });
}

// Makes one input of what all sources sent: fused, or one after the other.
void TierLayers::join_parts() {
  size_t values = 0;
  for (const std::vector<float>& part : parts_) values += part.size();
  if (fusion_) values = parts_[0].size() / fusion_->part_values() * fusion_->values();
  input_.resize(values);
  arithmetic().perform([&] {
    if (fusion_) return fusion_->forward(parts_, input_);
    auto place = input_.begin();
    for (const std::vector<float>& part : parts_)
      place = std::copy(part.begin(), part.end(), place);
  });
}

void TierLayers::receive_input(std::span<const Slice> slices, Tag tag) {
  const ActivationCode& code = code_below();
  parts_.resize(slices.size());
  for (size_t i = 0; i < slices.size(); ++i) {
    parts_[i].resize(slices[i].samples * code.values());
    if (slices[i].samples == 0) continue;
    wire_.resize(slices[i].samples * code.sample_bytes());
    receive_exactly(slices[i].from, tag, wire_, "an activation");
    arithmetic().perform([&] { code.decode(wire_, parts_[i]); });
  }
  join_parts();
}

// An exit is one more layer. Its backward pass costs twice as much arithmetic as its forward pass.
void TierLayers::add_exit(Work& work, double times, size_t samples) const {
  if (samples == 0) return;
  work.flops += times * static_cast<double>(samples) * head_->forward_flops();
  ++work.layers;
}

void TierLayers::charge_forward(size_t samples, bool with_exit) {
  Work work = forward_work(model_->architecture(), samples);
  if (with_exit && head_) add_exit(work, 1, samples);
  context_.node.clock().charge(work);
}

std::span<const float> TierLayers::forward(std::optional<float> scale) {
  PhaseScope scope(context_.watch, Phase::kCompute);
  const auto output = model_->forward(0, batch_, input_, scale);
  charge_forward(batch_.size(), !scale || (head_ && tiers_.weights[tier_] > 0));
  return output;
}

std::span<const float> TierLayers::head_scores(std::span<const float> output) {
  PhaseScope scope(context_.watch, Phase::kCompute);
  return is_last() ? output : head_->forward(output);
}

// Sends this device's scores for its part of the samples to the aggregator.
void TierLayers::send_scores(std::span<const float> output, Tag tag) {
  scores_.resize(batch_.size() * tiers_.classes);
  std::span<const float> scores = scores_;  // has the right size even if nothing is computed
  arithmetic().perform([&] { scores = head_scores(output); });
  send_to(tiers_.exit_rank(0, 0), tag, bytes_of(scores));
}

void TierLayers::pass_on(std::span<const float> output, Tag tag) {
  const size_t samples = output.size() / code().values();
  wire_.resize(samples * code().sample_bytes());
  {
    PhaseScope scope(context_.watch, Phase::kCompute);
    arithmetic().perform([&] { code().encode(output, wire_); });
    context_.node.clock().charge(
        {.flops = 0, .memory_bytes = static_cast<double>(output.size_bytes() + wire_.size())});
  }
  send_to(tiers_.rank_of(tier_ + 1), tag, wire_);
}

}  // namespace tutti

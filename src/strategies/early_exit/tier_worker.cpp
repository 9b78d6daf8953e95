#include "strategies/early_exit/tier_worker.h"

#include "core/bytes.h"
#include "models/losses.h"
#include "strategies/compute.h"
#include "strategies/early_exit/tags.h"
#include "strategies/parameter_layout.h"

namespace tutti {

TierWorker::TierWorker(Context& context, const Tiers& tiers)
    : TierAnswers(context, tiers),
      layout_(layout_of(model_->architecture())),
      optimizer_(make_optimizer(context.optimizer, layout_)) {
  if (place_) head_optimizer_ = head_optimizer(*place_);
  if (is_first() && tiers.devices > 1 && !tiers.views) {
    const size_t count = model_->parameters().size() + head_->parameter_count();
    const Group group{.ranks = tiers.ranks_of(0), .index = static_cast<size_t>(rank_), .racks = {}};
    device_gradients_ = Buffer<float>(count);
    device_sum_ = make_all_reduce(context.node, &context.watch, ring(group, count), kSumFloat);
  }
}

// The weighted loss of this tier's exit, with its gradients by the exit's parameters and by the
// output. Of devices that see parts the aggregator knows the loss.
double TierWorker::exit_loss(std::span<const float> output, float scale, uint64_t step) {
  const double weight = tiers_.weights[tier_];
  const auto weighted = static_cast<float>(static_cast<double>(scale) * weight);
  if (is_last()) {
    PhaseScope scope(context_.watch, Phase::kCompute);
    return arithmetic().value_of<double>([&] { return weight * model_->loss(0, batch_, weighted); },
                                         0);
  }
  head_slope_.resize(weight > 0 ? output.size() : 0);
  if (weight == 0) return 0;
  double loss = 0;
  score_slopes_.resize(batch_.size() * tiers_.classes);
  if (sees_part()) {
    send_scores(output, scores_tag(step, ScoresPart::kTraining));
    receive_exactly(tiers_.exit_rank(0, 0), slope_tag(step),
                    writable_bytes_of(std::span(score_slopes_)), "gradients");
  }
  arithmetic().perform([&] {
    PhaseScope scope(context_.watch, Phase::kCompute);
    if (!sees_part())
      loss = cross_entropy(head_->forward(output), batch_.labels, weighted, score_slopes_);
    head_->backward(output, score_slopes_, head_slope_);
  });
  return weight * loss;
}

// The gradient by the output: what comes back from the tier above where the value was in range,
// and what this tier's own exit adds.
void TierWorker::take_back(std::span<const float> output, uint64_t step) {
  slope_.resize(output.size());
  receive_from(tiers_.rank_of(tier_ + 1), slope_tag(step), writable_bytes_of(std::span(slope_)));
  arithmetic().perform([&] { code().pass_back(output, slope_); });
  arithmetic().add(std::span(slope_), head_slope_);
}

void TierWorker::backward(std::span<const Slice> slices, uint64_t step) {
  std::span<const float> below;
  {
    PhaseScope scope(context_.watch, Phase::kCompute);
    below = model_->backward(0, slope_);
    Work work = backward_work(model_->architecture(), batch_.size());
    if (head_ && tiers_.weights[tier_] > 0) add_exit(work, 2, batch_.size());
    context_.node.clock().charge(work);
  }
  if (is_first()) return;
  if (fusion_) arithmetic().perform([&] { fusion_->backward(below, parts_); });
  size_t done = 0;
  for (size_t i = 0; i < slices.size(); ++i) {
    if (slices[i].samples == 0) continue;
    const auto own = fusion_ ? std::span<const float>(parts_[i])
                             : below.subspan(done, slices[i].samples * code_below().values());
    send_to(slices[i].from, slope_tag(step), bytes_of(own));
    done += own.size();
  }
}

// Returns who sends this tier its input: the tier below, or the devices, each with its share of the
// samples or its part of all samples.
std::vector<TierWorker::Slice> TierWorker::slices_of(const Shares& shares) const {
  std::vector<Slice> slices;
  size_t all = 0;
  for (const auto& share : shares) all += share.size();
  if (tier_ > 1) return {{tiers_.rank_of(tier_ - 1), all}};
  for (size_t device = 0; tier_ == 1 && device < tiers_.devices; ++device)
    slices.push_back({static_cast<Rank>(device), fusion_ ? all : shares[device].size()});
  return slices;
}

double TierWorker::train(const Shares& shares, uint64_t step, float scale) {
  const Tag activation = scores_tag(step, ScoresPart::kTraining);
  const std::vector<Slice> slices = slices_of(shares);
  std::vector<uint32_t> samples;
  for (size_t device = 0; device < shares.size(); ++device)
    if (!is_first() || sees_part() || static_cast<Rank>(device) == rank_)
      samples.insert(samples.end(), shares[device].begin(), shares[device].end());
  load_input(samples, step);
  double loss = 0;
  if (samples.empty()) {  // a device for which the last batch of an epoch had none
    arithmetic().fill(model_->gradients(), 0);
    arithmetic().fill(head_->gradients(), 0);
    loss = share_loss(0, step);
  } else {
    if (!is_first()) receive_input(slices, activation);
    const std::span<const float> output = forward(scale);
    if (!is_last()) pass_on(output, activation);
    const double own = exit_loss(output, scale, step);
    loss = share_loss(own, step);
    if (!is_last()) take_back(output, step);
    backward(slices, step);
  }
  sum_devices(step);
  return loss;
}

void TierWorker::sum_devices(uint64_t step) {
  if (!device_sum_) return;
  const std::span<float> all = device_gradients_.span();
  const size_t own = model_->gradients().size();
  arithmetic().copy(model_->gradients(), all.first(own));
  arithmetic().copy(head_->gradients(), all.subspan(own));
  device_sum_->start(writable_bytes_of(all), Tag(Purpose::kGradient, Tag::wrapped(step)));
  device_sum_->finish();
  arithmetic().copy(all.first(own), model_->gradients());
  arithmetic().copy(all.subspan(own), head_->gradients());
}

void TierWorker::update(double rate) {
  PhaseScope scope(context_.watch, Phase::kAggregate);
  update_parameters(context_, layout_, *optimizer_, model_->parameters(), model_->gradients(),
                    rate);
  if (!head_ || tiers_.weights[tier_] == 0) return;
  update_parameters(context_, head_layout(*place_, tiers_.classes), *head_optimizer_,
                    head_->parameters(), head_->gradients(), rate);
}

}  // namespace tutti

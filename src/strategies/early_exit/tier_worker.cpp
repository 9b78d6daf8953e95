#include "strategies/early_exit/tier_worker.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/bytes.h"
#include "core/error.h"
#include "fabric/exchange.h"
#include "models/losses.h"
#include "strategies/early_exit/tags.h"
#include "strategies/parameter_layout.h"

namespace tutti {

TierWorker::TierWorker(Context& context, const Tiers& tiers)
    : context_(context),
      tiers_(tiers),
      tier_(tiers.tier_of(context.node.endpoint().rank())),
      model_(context.model.stage(tiers.layers[tier_])),
      layout_(layout_of(model_->architecture())),
      optimizer_(make_optimizer(context.optimizer, layout_)) {
  if (!is_last()) {
    const auto beyond = context.model.architecture().parameters.size() + 2 * tier_;
    head_.emplace(tiers.values[tier_], tiers.classes, context.task.seed,
                  static_cast<uint32_t>(beyond), arithmetic());
    head_optimizer_ = make_optimizer(context.optimizer, head_layout(tiers, tier_));
  }
  if (is_first() && tiers.devices > 1) {
    const size_t count = model_->parameters().size() + head_->parameter_count();
    const Group group{.ranks = tiers.ranks_of(0),
                      .index = static_cast<size_t>(context.node.endpoint().rank()),
                      .racks = {}};
    device_gradients_ = Buffer<float>(count);
    device_sum_ = make_all_reduce(context.node, &context.watch, ring(group, count), kSumFloat);
  }
}

void TierWorker::send_to(Rank to, Tag tag, std::span<const std::byte> bytes) {
  PhaseScope scope(context_.watch, Phase::kCommunicate);
  send(context_.node, to, tag, bytes);
  sent_ += static_cast<double>(bytes.size());
}

size_t TierWorker::receive_from(Rank from, Tag tag, std::span<std::byte> bytes) {
  PhaseScope scope(context_.watch, Phase::kWait);
  Handle handle = context_.node.endpoint().receive(from, tag, bytes);
  return finish(context_.node, handle);
}

// Features are for the first tier; answers for every exit. Dropout knows samples by their number.
void TierWorker::load(std::span<const uint32_t> samples, uint64_t step) {
  batch_.step = step;
  if (arithmetic())
    context_.data.dataset->gather(samples, batch_);
  else
    batch_.samples.assign(samples.begin(), samples.end());
}

void TierWorker::receive_input(std::span<const Slice> slices, Tag tag) {
  const ActivationCode& code = code_below();
  size_t total = 0;
  for (const Slice& slice : slices) total += slice.samples;
  input_.resize(total * code.values());
  size_t done = 0;
  for (const Slice& slice : slices) {
    if (slice.samples == 0) continue;
    wire_.resize(slice.samples * code.sample_bytes());
    const size_t bytes = receive_from(slice.from, tag, wire_);
    if (bytes != wire_.size())
      throw FabricError(FabricError::Kind::kProtocol, slice.from,
                        "an activation of another size than that of its samples");
    if (arithmetic())
      code.decode(wire_,
                  std::span(input_).subspan(done * code.values(), slice.samples * code.values()));
    done += slice.samples;
  }
}

// An exit is one more layer; backward it costs twice as much arithmetic as forward.
void TierWorker::add_exit(Work& work, double times, size_t samples) const {
  if (samples == 0) return;
  work.flops += times * static_cast<double>(samples) * head_->forward_flops();
  ++work.layers;
}

void TierWorker::charge_forward(size_t samples, bool with_exit) {
  Work work = forward_work(model_->architecture(), samples);
  if (with_exit && head_) add_exit(work, 1, samples);
  context_.node.clock().charge(work);
}

std::span<const float> TierWorker::forward(std::optional<float> scale) {
  PhaseScope scope(context_.watch, Phase::kCompute);
  const auto output = model_->forward(0, batch_, input_, scale);
  charge_forward(batch_.size(), !scale || (head_ && tiers_.weights[tier_] > 0));
  return output;
}

std::span<const float> TierWorker::head_scores(std::span<const float> output) {
  PhaseScope scope(context_.watch, Phase::kCompute);
  return is_last() ? output : head_->forward(output);
}

// The weighted loss of this tier's exit, with its gradients by the exit's parameters and by the
// output.
double TierWorker::exit_loss(std::span<const float> output, float scale) {
  const double weight = tiers_.weights[tier_];
  if (!arithmetic()) return 0;
  PhaseScope scope(context_.watch, Phase::kCompute);
  const auto weighted = static_cast<float>(static_cast<double>(scale) * weight);
  if (is_last()) return weight * model_->loss(0, batch_, weighted);
  head_slope_.resize(weight > 0 ? output.size() : 0);
  if (weight == 0) return 0;
  const std::span<const float> scores = head_->forward(output);
  score_slopes_.resize(scores.size());
  const double loss = cross_entropy(scores, batch_.labels, weighted, score_slopes_);
  head_->backward(output, score_slopes_, head_slope_);
  return weight * loss;
}

void TierWorker::pass_on(std::span<const float> output, Tag tag) {
  const size_t samples = output.size() / code().values();
  wire_.resize(samples * code().sample_bytes());
  {
    PhaseScope scope(context_.watch, Phase::kCompute);
    if (arithmetic()) code().encode(output, wire_);
    context_.node.clock().charge(
        {.flops = 0, .memory_bytes = static_cast<double>(output.size_bytes() + wire_.size())});
  }
  send_to(tiers_.rank_of(tier_ + 1), tag, wire_);
}

// The gradient by the output: what comes back from the tier above where the value was in range,
// and what this tier's own exit adds.
void TierWorker::take_back(std::span<const float> output, uint64_t step) {
  slope_.resize(output.size());
  receive_from(tiers_.rank_of(tier_ + 1), Tag(Purpose::kSlope, step),
               writable_bytes_of(std::span(slope_)));
  if (!arithmetic()) return;
  code().pass_back(output, slope_);
  for (size_t i = 0; i < head_slope_.size(); ++i) slope_[i] += head_slope_[i];
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
  size_t done = 0;
  for (const Slice& slice : slices) {
    if (slice.samples == 0) continue;
    const size_t values = slice.samples * code_below().values();
    send_to(slice.from, Tag(Purpose::kSlope, step), bytes_of(below.subspan(done, values)));
    done += values;
  }
}

// The losses of all exits meet in the cloud, which tells the sum.
double TierWorker::share_loss(double own, uint64_t step) {
  const Tag mine(Purpose::kControl, step, kExitLossPart), all(Purpose::kControl, step, kLossPart);
  const auto bytes = [](double& value) { return writable_bytes_of(std::span<double>(&value, 1)); };
  const Rank cloud = tiers_.cloud();
  if (!is_last()) {
    double sum = own;
    send_to(cloud, mine, bytes(sum));
    receive_from(cloud, all, bytes(sum));
    return sum;
  }
  for (Rank rank = 0; rank < cloud; ++rank) {
    double other = 0;
    receive_from(rank, mine, bytes(other));
    own += other;
  }
  for (Rank rank = 0; rank < cloud; ++rank) send_to(rank, all, bytes(own));
  return own;
}

double TierWorker::train(const std::vector<std::vector<uint32_t>>& shares, uint64_t step,
                         float scale) {
  const Tag activation(Purpose::kActivation, step, kTrainingPart);
  std::vector<Slice> slices;
  std::vector<uint32_t> samples;
  for (size_t device = 0; device < shares.size(); ++device) {
    if (is_first() && static_cast<Rank>(device) != context_.node.endpoint().rank()) continue;
    if (tier_ <= 1) slices.push_back({static_cast<Rank>(device), shares[device].size()});
    samples.insert(samples.end(), shares[device].begin(), shares[device].end());
  }
  if (tier_ > 1) slices = {{tiers_.rank_of(tier_ - 1), samples.size()}};
  load(samples, step);
  double loss = 0;
  if (samples.empty()) {  // a device for which the last batch of an epoch had none
    if (arithmetic()) {
      std::fill(model_->gradients().begin(), model_->gradients().end(), 0.0F);
      std::fill(head_->gradients().begin(), head_->gradients().end(), 0.0F);
    }
    loss = share_loss(0, step);
  } else {
    if (!is_first()) receive_input(slices, activation);
    const std::span<const float> output = forward(scale);
    if (!is_last()) pass_on(output, activation);
    const double own = exit_loss(output, scale);
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
  if (arithmetic()) {
    std::copy(model_->gradients().begin(), model_->gradients().end(), all.begin());
    std::copy(head_->gradients().begin(), head_->gradients().end(),
              all.begin() + static_cast<ptrdiff_t>(own));
  }
  device_sum_->start(writable_bytes_of(all), Tag(Purpose::kGradient, step));
  device_sum_->finish();
  if (!arithmetic()) return;
  std::copy_n(all.begin(), own, model_->gradients().begin());
  std::copy(all.begin() + static_cast<ptrdiff_t>(own), all.end(), head_->gradients().begin());
}

void TierWorker::update(double rate) {
  PhaseScope scope(context_.watch, Phase::kAggregate);
  if (arithmetic()) optimizer_->step(model_->parameters(), model_->gradients(), rate);
  charge_update(context_, layout_);
  if (!head_ || tiers_.weights[tier_] == 0) return;
  if (arithmetic()) head_optimizer_->step(head_->parameters(), head_->gradients(), rate);
  charge_update(context_, head_layout(tiers_, tier_));
}

void TierWorker::gather_parameters() {
  const Rank me = context_.node.endpoint().rank();
  for (size_t tier = 1; tier < tiers_.size(); ++tier) {
    const Rank owner = tiers_.rank_of(tier);
    const Tag tag(Purpose::kParameters, 0, tier);
    if (me != 0 && me != owner) continue;
    const Architecture part = stage_of(context_.model.architecture(), tiers_.layers[tier]);
    const auto values = context_.model.parameters().subspan(part.place.value, part.parameter_count);
    if (me == owner)
      send_to(0, tag, bytes_of(std::span<const float>(values)));
    else
      receive_from(owner, tag, writable_bytes_of(values));
  }
}

}  // namespace tutti

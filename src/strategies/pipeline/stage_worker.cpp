#include "strategies/pipeline/stage_worker.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/bytes.h"
#include "core/error.h"
#include "fabric/exchange.h"
#include "strategies/compute.h"

namespace tutti {
namespace {

// While one is computed the next may arrive, and the one before leave.
constexpr size_t kPair = 2;
// Evaluation passes are told from those of training by this bit of a tag's part.
constexpr uint64_t kEvaluationBit = 1 << (Tag::kPartBits - 1);

}  // namespace

StageWorker::StageWorker(Context& context, const Placement& placement, const PipelineConfig& config,
                         const MakeStageUpdate& make_update, size_t replica, size_t node,
                         size_t stage, size_t shard)
    : context_(context),
      placement_(placement),
      replica_(replica),
      stage_(stage),
      shard_(shard),
      recompute_(config.recompute),
      vertical_(config.vertical_sync && placement.nodes > 1),
      shards_(placement.shards == 1
                  ? nullptr
                  : std::make_unique<ShardSums>(context, placement, config, replica, stage, shard)),
      model_(shards_
                 ? context.model.shard(placement.stages[stage], shard, placement.shards, *shards_)
                 : context.model.stage(placement.stages[stage])),
      in_flight_(most_in_flight(schedule_tasks(placement.schedule, placement.shape(replica), node),
                                stage)),
      statistics_(model_->architecture().statistics()),
      gradient_(context, model_->gradients()),
      update_(make_update(context, placement, config, stage, shard, *model_)),
      batches_(std::max(kPair, in_flight_)),
      inputs_(batches_.size()),
      forward_sends_(batches_.size()),
      backward_sends_(batches_.size()) {
  const size_t versions = vertical_ ? placement.nodes : in_flight_;
  if (placement.asynchronous() && versions > 1)
    stash_.emplace(model_->parameters(), versions, context.arithmetic());
  read_s_.resize(versions);
  if (!is_first()) {
    const std::vector<Rank> from = ranks_of(stage - 1);
    const std::string what = fmt::format("stage {} waits for the activation", stage);
    below_.emplace(context.node, context.watch, from, Purpose::kActivation, stage, in_flight_ + 1,
                   what);
    evaluation_below_.emplace(context.node, context.watch, from, Purpose::kActivation,
                              kEvaluationBit | stage, kPair, what);
  }
  if (!is_last())
    above_.emplace(context.node, context.watch, ranks_of(stage + 1), Purpose::kSlope, stage, kPair,
                   fmt::format("stage {} waits for the gradient", stage));
}

std::vector<Rank> StageWorker::ranks_of(size_t stage) const {
  std::vector<Rank> ranks;
  for (size_t copy = 0; copy < placement_.shape(replica_).copies_of(stage); ++copy)
    ranks.push_back(placement_.rank_of(replica_, stage, shard_, copy));
  return ranks;
}

Rank StageWorker::rank_of(size_t stage, size_t micro_batch) const {
  const size_t copies = placement_.copies.empty() ? 1 : placement_.copies[stage];
  return placement_.rank_of(replica_, stage, shard_, micro_batch % copies);
}

void StageWorker::begin(const PassPlan& plan) {
  plan_ = plan;
  loss_ = 0;
  sums_ = {};
  gradient_.clear();
  updates_ = 0;
  if (vertical_ && plan_.training) stash_weights(0);
  const auto sizes = [&](size_t values) {
    std::vector<size_t> result;
    for (const auto& samples : plan_.samples) result.push_back(samples.size() * values);
    return result;
  };
  const Architecture& architecture = model_->architecture();
  if (!is_first()) below().begin(plan_.step, sizes(input_values(architecture)));
  if (!is_last() && plan_.training) above_->begin(plan_.step, sizes(output_values(architecture)));
}

// The first stage has as many batches under way as there are nodes: that many updates less one are
// missing when a batch enters, whichever stage it comes to.
size_t StageWorker::weights_slot(size_t micro_batch) const {
  if (!vertical_) return slot_of(micro_batch);
  return (micro_batch - std::min(micro_batch, placement_.nodes - 1)) % placement_.nodes;
}

void StageWorker::stash_weights(size_t slot) {
  PhaseScope scope(context_.watch, Phase::kAggregate);
  stash_->keep(slot);
  read_s_[slot] = context_.node.clock().now();
  context_.node.clock().charge(
      {.flops = 0, .memory_bytes = 8.0 * static_cast<double>(model_->parameters().size())});
}

// The weights of a micro-batch in the place of the current ones, until the result is destroyed.
std::unique_ptr<WeightStash::Borrowed> StageWorker::borrow(size_t micro_batch) {
  PhaseScope scope(context_.watch, Phase::kAggregate);
  context_.node.clock().charge(  // there and back
      {.flops = 0, .memory_bytes = 16.0 * static_cast<double>(model_->parameters().size())});
  return std::make_unique<WeightStash::Borrowed>(*stash_, weights_slot(micro_batch));
}

// Recomputing needs a slot for what is under way and one for what is sent, both ways.
size_t StageWorker::forward_slot(size_t micro_batch) const {
  return recompute_ || !plan_.training ? micro_batch % kPair : slot_of(micro_batch);
}

size_t StageWorker::backward_slot(size_t micro_batch) const {
  return recompute_ ? kPair + micro_batch % kPair : slot_of(micro_batch);
}

std::span<const uint32_t> StageWorker::samples(size_t micro_batch) const {
  return plan_.samples[micro_batch];
}

// Features are for the first stage and answers for the last; dropout knows samples by their number.
void StageWorker::gather(size_t micro_batch) {
  Batch& batch = batches_[micro_batch % batches_.size()];
  batch.step = plan_.step + (placement_.asynchronous() ? micro_batch : 0);
  if (is_first() || is_last())
    tutti::gather(context_, samples(micro_batch), batch);
  else
    batch.samples.assign(samples(micro_batch).begin(), samples(micro_batch).end());
}

// Asynchronously each is a batch of its own.
float StageWorker::scale_of(size_t micro_batch) const {
  return placement_.asynchronous() ? 1.0F / static_cast<float>(samples(micro_batch).size())
                                   : plan_.scale;
}

std::span<const float> StageWorker::compute_forward(size_t model_slot, size_t micro_batch) {
  PhaseScope scope(context_.watch, Phase::kCompute);
  const size_t slot = micro_batch % batches_.size();
  if (shards_) shards_->begin_forward(plan_.step, micro_batch, batches_[slot].size());
  std::optional<float> scale;
  if (plan_.training) scale = scale_of(micro_batch);
  const auto output = model_->forward(model_slot, batches_[slot], inputs_[slot], scale);
  charge_pass(forward_work(model_->architecture(), samples(micro_batch).size()));
  return output;
}

// Charges a pass, except for what was charged before the sums within it.
void StageWorker::charge_pass(Work work) {
  if (shards_) {
    work.flops = std::max(0.0, work.flops - shards_->charged().flops);
    work.layers = std::max(0.0, work.layers - shards_->charged().layers);
  }
  context_.node.clock().charge(work);
}

void StageWorker::forward(size_t micro_batch) {
  if (samples(micro_batch).empty()) {
    if (!is_first() && !plan_.training) below().release(micro_batch);
    return;
  }
  if (!plan_.training) context_.node.clock().begin_chunk();
  gather(micro_batch);
  if (!is_first()) inputs_[micro_batch % batches_.size()] = below().take(micro_batch);
  const size_t slot = forward_slot(micro_batch);
  finish_send(forward_sends_[slot], "activation", micro_batch);
  if (stash_ && plan_.training && !vertical_) stash_weights(slot_of(micro_batch));
  std::span<const float> output;
  {
    const auto weights = vertical_ && plan_.training ? borrow(micro_batch) : nullptr;
    output = compute_forward(slot, micro_batch);
  }
  if (is_last())
    measure(micro_batch);
  else
    send(forward_sends_[slot], rank_of(stage_ + 1, micro_batch), Purpose::kActivation, stage_ + 1,
         output);
  if (!is_first() && !plan_.training) below().release(micro_batch);
}

void StageWorker::measure(size_t micro_batch) {
  const Batch& batch = batches_[micro_batch % batches_.size()];
  const size_t slot = forward_slot(micro_batch);
  PhaseScope scope(context_.watch, Phase::kCompute);
  if (plan_.training)
    loss_ += model_->loss(slot, batch, scale_of(micro_batch));
  else
    add_evaluation(sums_, model_->evaluate(slot, batch));
}

void StageWorker::backward(size_t micro_batch) {
  if (samples(micro_batch).empty()) {
    if (!is_last()) above_->release(micro_batch);
    if (!is_first()) below().release(micro_batch);
    return;
  }
  const std::span<float> slope = is_last() ? std::span<float>{} : above_->take(micro_batch);
  const size_t slot = backward_slot(micro_batch);
  finish_send(backward_sends_[slot % backward_sends_.size()], "gradient", micro_batch);
  std::span<const float> input_slope;
  {
    const auto weights = stash_ ? borrow(micro_batch) : nullptr;
    input_slope = compute_backward(micro_batch, slope);
    if (stash_) shift_statistics(micro_batch, -1);
  }
  if (stash_) {
    shift_statistics(micro_batch, 1);
    returned_slot_ = weights_slot(micro_batch);
    missed_ = stash_->missed(returned_slot_);
  }
  if (!is_first())
    send(backward_sends_[slot % backward_sends_.size()], rank_of(stage_ - 1, micro_batch),
         Purpose::kSlope, stage_ - 1, input_slope);
  gradient_.add();
  if (!is_last()) above_->release(micro_batch);
  if (!is_first()) below().release(micro_batch);
}

// How far running statistics are off is told of those that were there when the batch passed. They
// move from where they are now: called with the weights of then and with those of now.
void StageWorker::shift_statistics(size_t micro_batch, float sign) {
  context_.arithmetic().perform([&] {
    const float all =
        sign * scale_of(micro_batch) * static_cast<float>(samples(micro_batch).size());
    const std::span<float> gradients = model_->gradients();
    const std::span<const float> weights = model_->parameters();
    for (const Range range : statistics_)
      for (size_t i = range.begin; i < range.end; ++i) gradients[i] += all * weights[i];
  });
}

std::span<const float> StageWorker::compute_backward(size_t micro_batch, std::span<float> slope) {
  const size_t slot = backward_slot(micro_batch);
  if (recompute_) {
    compute_forward(slot, micro_batch);
    if (is_last())
      model_->loss(slot, batches_[micro_batch % batches_.size()], scale_of(micro_batch));
  }
  PhaseScope scope(context_.watch, Phase::kCompute);
  if (shards_) shards_->begin_backward(plan_.step, micro_batch, samples(micro_batch).size());
  const auto input_slope = model_->backward(slot, slope);
  charge_pass(backward_work(model_->architecture(), samples(micro_batch).size()));
  return input_slope;
}

void StageWorker::update(double rate) {
  update_->update(gradient_, rate);
  gradient_.clear();
  if (stash_) stash_->updated();
  ++updates_;
  if (vertical_) stash_weights(updates_ % placement_.nodes);
}

void StageWorker::date(Applied& update) const {
  if (!stash_) return;
  update.staleness = static_cast<double>(missed_);
  update.age_s = context_.node.clock().now() - read_s_[returned_slot_];
}

void StageWorker::send(Handle& handle, Rank to, Purpose purpose, size_t stage,
                       std::span<const float> values) {
  const uint64_t part = plan_.training ? stage : kEvaluationBit | stage;
  const Tag tag(purpose, Tag::wrapped(plan_.step), part);
  PhaseScope scope(context_.watch, Phase::kCommunicate);
  handle = context_.node.endpoint().send(to, tag, bytes_of(values));
}

void StageWorker::finish_send(Handle& handle, const char* what, size_t micro_batch) {
  if (!handle.pending()) return;
  PhaseScope scope(context_.watch, Phase::kCommunicate);
  try {
    finish(context_.node, handle);
  } catch (const FabricError& error) {
    throw FabricError(error.kind(), error.peer(),
                      fmt::format("stage {} sends the {} before micro-batch {}: {}", stage_, what,
                                  micro_batch, error.what()));
  }
}

void StageWorker::end() {
  for (Handle& handle : forward_sends_) finish_send(handle, "activation", plan_.samples.size());
  for (Handle& handle : backward_sends_) finish_send(handle, "gradient", plan_.samples.size());
}

}  // namespace tutti

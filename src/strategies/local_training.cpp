#include "strategies/local_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "models/sparse_model.h"
#include "strategies/parameter_layout.h"

namespace tutti {

LocalTraining::LocalTraining(Context& context, Pace pace)
    : context_(context),
      pace_(pace),
      batches_(context.data.splits.train, context.task.partition, context.cluster.workers,
               context.task.seed, !context.node.clock().cost_only()),
      schedule_(context.optimizer, context.task.global_batch, context.task.epochs),
      layout_(layout_of(context.model.architecture())),
      optimizer_(make_optimizer(context.optimizer, layout_)),
      started_s_(context.node.clock().now()),
      next_evaluation_(context.task.eval_every) {
  const TaskConfig& task = context.task;
  const size_t samples = context.data.splits.train.size();
  if (pace == Pace::kLockstep)
    schedule_.end_after(task.max_steps, samples);
  else if (task.max_steps > 0)  // max_steps limits the samples then
    schedule_.end_at(static_cast<double>(task.max_steps * task.global_batch) /
                     static_cast<double>(samples));
  begin_epoch();
}

void LocalTraining::begin_epoch() {
  // At a free pace a fast worker goes through its share more often than the task has epochs.
  batches_.begin_epoch(epoch_, schedule_.global_batch(std::min(epoch_, context_.task.epochs - 1)));
}

double LocalTraining::epoch() const {
  if (pace_ == Pace::kFree)
    return static_cast<double>(samples_) / static_cast<double>(context_.data.splits.train.size());
  return static_cast<double>(epoch_) +
         static_cast<double>(step_) / static_cast<double>(batches_.steps());
}

bool LocalTraining::over() const {
  const TaskConfig& task = context_.task;
  if (pace_ == Pace::kLockstep)
    return epoch_ == task.epochs || (task.max_steps > 0 && steps_ == task.max_steps);
  const auto all = task.epochs * static_cast<int64_t>(context_.data.splits.train.size());
  return samples_ >= (task.max_steps > 0 ? std::min(all, task.max_steps * task.global_batch) : all);
}

double LocalTraining::rate() const {
  return schedule_.rate(std::min(epoch(), static_cast<double>(context_.task.epochs)));
}

void LocalTraining::gather() {
  began_s_ = elapsed_s();
  const auto share = batches_.share(step_, context_.node.endpoint().rank());
  batch_.step = static_cast<uint64_t>(steps_);
  if (context_.node.clock().cost_only())
    batch_.samples.assign(share.begin(), share.end());
  else
    context_.data.dataset->gather(share, batch_);
}

float LocalTraining::scale() const {
  return static_cast<float>(context_.cluster.workers) / static_cast<float>(batches_.count(step_));
}

void LocalTraining::note_loss(double loss) {
  if (!std::isfinite(loss)) throw diverged_at(static_cast<uint64_t>(steps_));
  loss_ = batch_.size() == 0 ? 0 : loss / static_cast<double>(batch_.size());
  rate_ = rate();
}

void LocalTraining::gradient(const Model::Ready& ready) {
  context_.node.clock().begin_step();
  gather();
  note_loss(compute_gradient(context_, batch_, scale(), ready));
}

std::span<const uint64_t> LocalTraining::touch() {
  gather();
  touched_rows(context_.model.architecture(), batch_, keys_);
  return keys_;
}

void LocalTraining::sparse_gradient() {
  PhaseScope scope(context_.watch, Phase::kCompute);
  auto* const model = dynamic_cast<SparseModel*>(&context_.model);
  TUTTI_CHECK(model != nullptr);
  context_.recorder.trained(batch_.size());
  note_loss(model->sparse_gradient(batch_, keys_, scale()));
}

void LocalTraining::update() {
  PhaseScope scope(context_.watch, Phase::kAggregate);
  if (!context_.node.clock().cost_only())
    optimizer_->step(context_.model.parameters(), context_.model.gradients(), rate_);
  charge_update(context_, layout_);
}

void LocalTraining::end_step(double staleness) {
  ++steps_;
  own_samples_ += static_cast<int64_t>(batch_.size());
  // At a free pace the samples of the other workers are reported after the step.
  samples_ +=
      pace_ == Pace::kLockstep ? batches_.count(step_) : static_cast<int64_t>(batch_.size());
  if (++step_ == batches_.steps()) {
    ++epoch_;
    step_ = 0;
    if (pace_ == Pace::kFree || epoch_ < context_.task.epochs) begin_epoch();
  }
  context_.recorder.applied(
      {.round = steps_, .staleness = staleness, .age_s = elapsed_s() - began_s_});
  context_.recorder.step({.step = steps_,
                          .time_s = elapsed_s(),
                          .loss = loss_,
                          .rate = rate_,
                          .samples = samples_,
                          .share = static_cast<int64_t>(batch_.size())});
}

void LocalTraining::pass_over() {
  next_evaluation_ = next_due(context_.task.eval_every, epoch());
}

bool LocalTraining::evaluate(std::span<const Rank> members) {
  const double now = epoch();
  next_evaluation_ = next_due(context_.task.eval_every, now);
  const Quality quality = evaluate_among(
      context_, members, context_.data.splits.validation,
      // At a free pace steps differ, but all evaluate together only once, at the end.
      Tag(Purpose::kEvaluation, pace_ == Pace::kFree ? 0 : static_cast<uint64_t>(steps_),
          kValidationPart));
  context_.recorder.evaluation({.step = steps_,
                                .time_s = elapsed_s(),
                                .epoch = now,
                                .samples = samples_,
                                .loss = quality.loss,
                                .quality = quality.quality});
  return context_.task.stop_at_target && reached(context_, quality.quality);
}

void refuse_deterministic(const TaskConfig& task, std::string_view strategy) {
  if (task.deterministic)
    throw ConfigError("task.deterministic",
                      fmt::format("task.deterministic = true asks for the same result on any "
                                  "number of workers, but with strategy.kind = \"{}\" each has "
                                  "parameters of its own; set it to false, or choose allreduce",
                                  strategy));
}

void ParametersInstead::swap() {
  if (context_.node.clock().cost_only()) return;
  const std::span<float> parameters = context_.model.parameters();
  std::swap_ranges(parameters.begin(), parameters.end(), own_.begin());
}

}  // namespace tutti

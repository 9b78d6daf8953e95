#include "strategies/local_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "models/sparse_model.h"
#include "strategies/compute.h"
#include "strategies/evaluation.h"
#include "strategies/parameter_layout.h"

namespace tutti {

LocalTraining::LocalTraining(Context& context, Pace pace)
    : context_(context),
      pace_(pace),
      batches_(deal_batches(context, context.cluster.workers)),
      progress_(context.task),
      sequence_(context.task, context.optimizer, context.data.splits.train.size(), batches_,
                progress_, pace),
      layout_(layout_of(context.model.architecture())),
      optimizer_(make_optimizer(context.optimizer, layout_)),
      started_s_(context.node.clock().now()) {}

void LocalTraining::gather() {
  began_s_ = elapsed_s();
  rate_ = sequence_.rate();
  const auto share = batches_.share(progress_.step, context_.node.endpoint().rank());
  batch_.step = static_cast<uint64_t>(steps());
  tutti::gather(context_, share, batch_);
}

float LocalTraining::scale() const {
  return static_cast<float>(context_.cluster.workers) / static_cast<float>(sequence_.count());
}

void LocalTraining::note_loss(double loss) {
  if (!std::isfinite(loss)) throw diverged_at(static_cast<uint64_t>(steps()));
  loss_ = batch_.size() == 0 ? 0 : loss / static_cast<double>(batch_.size());
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
  auto* const model = dynamic_cast<SparseModel*>(&context_.model.whole());
  TUTTI_CHECK(model != nullptr);
  context_.recorder.trained(batch_.size());
  note_loss(model->sparse_gradient(batch_, keys_, scale()));
}

void LocalTraining::update() {
  PhaseScope scope(context_.watch, Phase::kAggregate);
  update_parameters(context_, layout_, *optimizer_, context_.model.parameters(),
                    context_.model.gradients(), rate_);
}

void LocalTraining::end_step(double staleness) {
  const auto own = static_cast<int64_t>(batch_.size());
  own_samples_ += own;
  // At a free pace the samples of the other workers are reported after the step.
  sequence_.advance(pace_ == Pace::kLockstep ? sequence_.count() : own);
  context_.recorder.applied(
      {.round = steps(), .staleness = staleness, .age_s = elapsed_s() - began_s_});
  context_.recorder.step(progress_.step_row(elapsed_s(), loss_, rate_, own));
}

bool LocalTraining::evaluate(std::span<const Rank> members) {
  return progress_.evaluate(context_.task, context_.model.architecture().classification,
                            context_.recorder, [&] { return measure(members); });
}

EvaluationRow LocalTraining::measure(std::span<const Rank> members) {
  const Quality quality = evaluate_among(
      context_, members, context_.data.splits.validation,
      // At a free pace steps differ, but all evaluate together only once, at the end.
      Tag(Purpose::kEvaluation, pace_ == Pace::kFree ? Tag::Step(0) : Tag::wrapped(steps()),
          EvaluationPart::kValidation));
  EvaluationRow row = progress_.evaluation_row(elapsed_s(), quality);
  // At a free pace workers take different numbers of steps, so those of a run are global batches.
  // What was not heard of yet counts, too: most of it by the time it is measured.
  if (pace_ == Pace::kFree) {
    row.samples = sequence_.likely_samples();
    row.step = row.samples / context_.task.global_batch;
  }
  return row;
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
  context_.arithmetic().perform([&] {
    const std::span<float> parameters = context_.model.parameters();
    std::swap_ranges(parameters.begin(), parameters.end(), own_.begin());
  });
}

}  // namespace tutti

#include "strategies/synchronous.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "data/batches.h"
#include "strategies/compute.h"
#include "strategies/parameter_layout.h"

namespace tutti {
namespace {

class Trainer {
 public:
  Trainer(Context& context, GradientExchange& exchange)
      : context_(context),
        exchange_(exchange),
        batches_(context.data.splits.train, context.task.partition, context.cluster.workers,
                 context.task.seed, !context.node.clock().cost_only()),
        schedule_(context.optimizer, context.task.global_batch, context.task.epochs),
        layout_(layout_of(context.model.architecture())),
        optimizer_(make_optimizer(context.optimizer, layout_)),
        started_s_(context.node.clock().now()) {}

  void run() {
    context_.node.membership().end_waits_on_any_loss(true);
    for (int64_t epoch = 0; epoch < context_.task.epochs; ++epoch) {
      batches_.begin_epoch(epoch, schedule_.global_batch(epoch));
      for (int64_t step = 0; step < batches_.steps(); ++step) {
        const double progress =
            static_cast<double>(epoch) +
            static_cast<double>(step + 1) / static_cast<double>(batches_.steps());
        take_step(step, schedule_.rate(static_cast<double>(epoch) +
                                       static_cast<double>(step) /
                                           static_cast<double>(batches_.steps())));
        const bool last = (step + 1 == batches_.steps() && epoch + 1 == context_.task.epochs) ||
                          (context_.task.max_steps > 0 && steps_ == context_.task.max_steps);
        if (measure(progress, last) && context_.task.stop_at_target) return;
        if (last) return;
      }
    }
  }

 private:
  double elapsed_s() const { return context_.node.clock().now() - started_s_; }

  void take_step(int64_t step, double rate) {
    const auto tag_step = static_cast<uint64_t>(steps_);
    const double began_s = elapsed_s();
    const int64_t count = batches_.count(step);
    const auto scale = 1.0f / static_cast<float>(count);
    const double loss = context_.task.deterministic ? exact_gradient(step, scale, tag_step)
                                                    : share_gradient(step, scale, tag_step);
    if (!std::isfinite(loss))
      throw DivergedError(
          fmt::format("the loss is {} at step {}; try a smaller optimizer.lr", loss, steps_));
    {
      PhaseScope scope(context_.watch, Phase::kAggregate);
      if (!context_.node.clock().cost_only())
        optimizer_->step(context_.model.parameters(), context_.model.gradients(), rate);
      charge_update(context_, layout_);
    }
    ++steps_;
    samples_ += count;
    context_.recorder.applied({.round = steps_, .staleness = 0, .age_s = elapsed_s() - began_s});
    context_.recorder.step(
        {.step = steps_, .time_s = elapsed_s(), .loss = loss, .rate = rate, .samples = samples_});
  }

  // Every worker computes its share of the batch in one go, exchanging what is ready meanwhile.
  double share_gradient(int64_t step, float scale, uint64_t tag_step) {
    const auto share = batches_.share(step, context_.node.endpoint().rank());
    gather(share, tag_step);
    const double loss = compute_gradient(context_, batch_, scale,
                                         [&](Range range) { exchange_.ready(tag_step, range); });
    exchange_.finish(tag_step);
    return share.empty() ? 0 : loss / static_cast<double>(share.size());
  }

  // The batch is cut into lanes that do not depend on the workers, and added up exactly.
  double exact_gradient(int64_t step, float scale, uint64_t tag_step) {
    const auto lanes = static_cast<size_t>(context_.task.lanes);
    const Range mine = part_of(lanes, static_cast<size_t>(context_.cluster.workers),
                               static_cast<size_t>(context_.node.endpoint().rank()));
    const std::span<ExactSum> sums = exchange_.exact_sums();
    const bool arithmetic = !context_.node.clock().cost_only();
    if (arithmetic) std::fill(sums.begin(), sums.end(), ExactSum{});
    double loss = 0;
    size_t count = 0;
    for (size_t lane = mine.begin; lane < mine.end; ++lane) {
      const auto samples = batches_.lane(step, static_cast<int64_t>(lane), context_.task.lanes);
      if (samples.empty()) continue;
      gather(samples, tag_step);
      loss += compute_gradient(context_, batch_, scale, [](Range) {});
      count += samples.size();
      PhaseScope scope(context_.watch, Phase::kAggregate);
      if (arithmetic) accumulate(sums, context_.model.gradients());
      context_.node.clock().charge(
          {.flops = 0, .memory_bytes = 36.0 * static_cast<double>(sums.size())});
    }
    exchange_.finish_exact(tag_step);
    PhaseScope scope(context_.watch, Phase::kAggregate);
    if (arithmetic) round_all(sums, context_.model.gradients());
    context_.node.clock().charge(
        {.flops = 0, .memory_bytes = 20.0 * static_cast<double>(sums.size())});
    return count ? loss / static_cast<double>(count) : 0;
  }

  void gather(std::span<const uint32_t> samples, uint64_t step) {
    batch_.step = step;
    if (context_.node.clock().cost_only())
      batch_.samples.assign(samples.begin(), samples.end());
    else
      context_.data.dataset->gather(samples, batch_);
  }

  // Measures quality when it is due; true when the target is reached.
  bool measure(double epoch, bool last) {
    if (!last && epoch + 1e-9 < next_evaluation_) return false;
    while (next_evaluation_ <= epoch + 1e-9) next_evaluation_ += context_.task.eval_every;
    const Quality quality = evaluate_together(
        context_, context_.data.splits.validation,
        Tag(Purpose::kEvaluation, static_cast<uint64_t>(steps_), kValidationPart));
    context_.recorder.evaluation({.step = steps_,
                                  .time_s = elapsed_s(),
                                  .epoch = epoch,
                                  .samples = samples_,
                                  .loss = quality.loss,
                                  .quality = quality.quality});
    return reached(context_, quality.quality);
  }

  Context& context_;
  GradientExchange& exchange_;
  Batches batches_;
  Schedule schedule_;
  Layout layout_;
  std::unique_ptr<Optimizer> optimizer_;
  double started_s_;
  Batch batch_;
  int64_t steps_ = 0;
  int64_t samples_ = 0;
  double next_evaluation_ = context_.task.eval_every;
};

}  // namespace

std::string synchronous_class(const TaskConfig& task) {
  return task.partition == "global" ? "synchronous" : "";
}

void train_synchronously(Context& context, GradientExchange& exchange) {
  Trainer(context, exchange).run();
}

}  // namespace tutti

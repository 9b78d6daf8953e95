#include "strategies/step_loop.h"

#include <algorithm>

namespace tutti {
namespace {

class StepLoop {
 public:
  StepLoop(Context& context, Batches& batches, StepTaker& taker)
      : context_(context),
        batches_(batches),
        taker_(taker),
        schedule_(context.optimizer, context.task.global_batch, context.task.epochs),
        started_s_(context.node.clock().now()) {
    schedule_.end_after(context.task.max_steps, context.data.splits.train.size());
  }

  void run() {
    for (int64_t epoch = 0; epoch < context_.task.epochs; ++epoch) {
      batches_.begin_epoch(epoch, schedule_.global_batch(epoch));
      for (int64_t step = 0; step < batches_.steps(); ++step) {
        take_step({.step = step,
                   .number = static_cast<uint64_t>(steps_),
                   .rate = schedule_.rate(static_cast<double>(epoch) +
                                          static_cast<double>(step) /
                                              static_cast<double>(batches_.steps())),
                   .followers = followers(epoch, step)});
        const bool last = (step + 1 == batches_.steps() && epoch + 1 == context_.task.epochs) ||
                          (context_.task.max_steps > 0 && steps_ == context_.task.max_steps);
        if (measure(progress(epoch, step), last) && context_.task.stop_at_target) return;
        if (last) return;
      }
    }
  }

 private:
  // In epochs, after this step.
  double progress(int64_t epoch, int64_t step) const {
    return static_cast<double>(epoch) +
           static_cast<double>(step + 1) / static_cast<double>(batches_.steps());
  }

  int64_t followers(int64_t epoch, int64_t step) const {
    int64_t count = batches_.steps() - 1 - step;
    if (context_.task.max_steps > 0) count = std::min(count, context_.task.max_steps - steps_ - 1);
    for (int64_t i = 0; i < count; ++i)
      if (progress(epoch, step + i) + 1e-9 >= next_evaluation_) return i;
    return count;
  }

  double elapsed_s() const { return context_.node.clock().now() - started_s_; }

  void take_step(const StepAhead& next) {
    const double began_s = elapsed_s();
    context_.node.clock().begin_step();
    const StepLoss loss = taker_.take_step(batches_, next);
    ++steps_;
    samples_ += batches_.count(next.step);
    Applied update{.round = steps_, .staleness = 0, .age_s = elapsed_s() - began_s};
    taker_.date(update);
    context_.recorder.applied(update);
    context_.recorder.step({.step = steps_,
                            .time_s = elapsed_s(),
                            .loss = loss.mean,
                            .rate = next.rate,
                            .samples = samples_,
                            .share = static_cast<int64_t>(loss.samples)});
  }

  // Measures quality when it is due; true when the target is reached.
  bool measure(double epoch, bool last) {
    if (!last && epoch + 1e-9 < next_evaluation_) return false;
    next_evaluation_ = next_due(context_.task.eval_every, epoch);
    const Quality quality =
        taker_.validate({Purpose::kEvaluation, Tag::wrapped(steps_), EvaluationPart::kValidation});
    context_.recorder.evaluation({.step = steps_,
                                  .time_s = elapsed_s(),
                                  .epoch = epoch,
                                  .samples = samples_,
                                  .loss = quality.loss,
                                  .quality = quality.quality});
    return reached(context_, quality.quality);
  }

  Context& context_;
  Batches& batches_;
  StepTaker& taker_;
  Schedule schedule_;
  double started_s_;
  int64_t steps_ = 0;
  int64_t samples_ = 0;
  double next_evaluation_ = context_.task.eval_every;
};

}  // namespace

void run_steps(Context& context, Batches& batches, StepTaker& taker) {
  StepLoop(context, batches, taker).run();
}

}  // namespace tutti

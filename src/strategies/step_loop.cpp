#include "strategies/step_loop.h"

#include "strategies/batch_sequence.h"

namespace tutti {
namespace {

class StepLoop {
 public:
  StepLoop(Context& context, Batches& batches, StepTaker& taker)
      : context_(context),
        taker_(taker),
        progress_(context.task),
        sequence_(context.task, context.optimizer, context.data.splits.train.size(), batches,
                  progress_),
        started_s_(context.node.clock().now()) {}

  void run() {
    while (!sequence_.over() && !progress_.ends_at_target(context_.task)) {
      take_step({.step = progress_.step,
                 .number = static_cast<uint64_t>(progress_.whole_steps()),
                 .rate = sequence_.rate(),
                 .followers = sequence_.followers()});
      if (sequence_.over() || progress_.is_due()) measure();
    }
  }

 private:
  double elapsed_s() const { return context_.node.clock().now() - started_s_; }

  void take_step(const StepAhead& next) {
    const double began_s = elapsed_s();
    context_.node.clock().begin_step();
    const StepLoss loss = taker_.take_step(sequence_.batches(), next);
    sequence_.advance(sequence_.count());
    Applied update{
        .round = progress_.whole_steps(), .staleness = 0, .age_s = elapsed_s() - began_s};
    taker_.date(update);
    context_.recorder.applied(update);
    context_.recorder.step(
        progress_.step_row(elapsed_s(), loss.mean, next.rate, static_cast<int64_t>(loss.samples)));
  }

  void measure() {
    progress_.evaluate(context_.task, context_.model.architecture().classification,
                       context_.recorder, [&] {
                         const Tag tag(Purpose::kEvaluation, Tag::wrapped(progress_.whole_steps()),
                                       EvaluationPart::kValidation);
                         const Quality quality = taker_.validate(tag);
                         return progress_.evaluation_row(elapsed_s(), quality);
                       });
  }

  Context& context_;
  StepTaker& taker_;
  TrainingProgress progress_;
  BatchSequence sequence_;
  double started_s_;
};

}  // namespace

void run_steps(Context& context, Batches& batches, StepTaker& taker) {
  StepLoop(context, batches, taker).run();
}

}  // namespace tutti

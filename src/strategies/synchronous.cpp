#include "strategies/synchronous.h"

#include <cmath>
#include <optional>

#include "core/finite.h"
#include "strategies/balance.h"
#include "strategies/compute.h"
#include "strategies/evaluation.h"
#include "strategies/parameter_layout.h"
#include "strategies/step_loop.h"

namespace tutti {
namespace {

class Trainer : public StepTaker {
 public:
  Trainer(Context& context, GradientExchange& exchange, bool balance)
      : context_(context),
        exchange_(exchange),
        layout_(layout_of(context.model.architecture())),
        optimizer_(make_optimizer(context.optimizer, layout_)) {
    if (balance) balance_.emplace(context);
  }

  StepLoss take_step(const Batches& batches, const StepAhead& next) override {
    const int64_t step = next.step;
    const uint64_t number = next.number;
    const auto scale = 1.0f / static_cast<float>(batches.count(step));
    const StepLoss loss = context_.task.deterministic
                              ? exact_gradient(batches, step, scale, number)
                              : share_gradient(batches, step, scale, number);
    PhaseScope scope(context_.watch, Phase::kAggregate);
    // The sum is what all workers have in common: this way all of them see it, or none.
    context_.arithmetic().perform([&] {
      if (!all_finite(context_.model.gradients())) throw diverged_at(number);
    });
    update_parameters(context_, layout_, *optimizer_, context_.model.parameters(),
                      context_.model.gradients(), next.rate);
    return loss;
  }

  Quality validate(Tag tag) override {
    return evaluate_together(context_, context_.data.splits.validation, tag);
  }

 private:
  // Every worker computes its share of the batch in one go, exchanging what is ready meanwhile.
  StepLoss share_gradient(const Batches& batches, int64_t step, float scale, uint64_t tag_step) {
    const double began_s = context_.node.clock().now();
    const auto share = balance_ ? batches.part(step, balance_->part(batch_size(batches, step)))
                                : batches.share(step, context_.node.endpoint().rank());
    gather(share, tag_step);
    const double loss = compute_gradient(context_, batch_, scale,
                                         [&](Range range) { exchange_.ready(tag_step, range); });
    const double seconds = context_.node.clock().now() - began_s;
    exchange_.finish(tag_step);
    if (balance_) balance_->worked(share.size(), seconds, tag_step);
    return mean_loss(loss, share.size());
  }

  // The batch is cut into lanes that do not depend on the workers, and added up exactly.
  StepLoss exact_gradient(const Batches& batches, int64_t step, float scale, uint64_t tag_step) {
    const auto lanes = static_cast<size_t>(context_.task.lanes);
    const double began_s = context_.node.clock().now();
    const Range mine = balance_ ? balance_->part(lanes)
                                : part_of(lanes, static_cast<size_t>(context_.cluster.workers),
                                          static_cast<size_t>(context_.node.endpoint().rank()));
    GradientSum& sum = exchange_.exact_sum();
    sum.clear();
    double loss = 0;
    size_t count = 0;
    for (size_t lane = mine.begin; lane < mine.end; ++lane) {
      const auto samples = batches.lane(step, static_cast<int64_t>(lane), context_.task.lanes);
      if (samples.empty()) continue;
      gather(samples, tag_step);
      loss += compute_gradient(context_, batch_, scale, [](Range) {});
      count += samples.size();
      sum.add();
    }
    const double seconds = context_.node.clock().now() - began_s;
    exchange_.finish_exact(tag_step);
    if (balance_) balance_->worked(mine.size(), seconds, tag_step);
    PhaseScope scope(context_.watch, Phase::kAggregate);
    sum.values();
    return mean_loss(loss, count);
  }

  static size_t batch_size(const Batches& batches, int64_t step) {
    return static_cast<size_t>(batches.count(step));
  }

  void gather(std::span<const uint32_t> samples, uint64_t step) {
    batch_.step = step;
    tutti::gather(context_, samples, batch_);
  }

  Context& context_;
  GradientExchange& exchange_;
  Layout layout_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<Balance> balance_;
  Batch batch_;
};

}  // namespace

std::string synchronous_class(const TaskConfig& task) {
  // Which samples are normalised together may depend on the shares; lanes do not.
  if (normalises_batches(task.model) && !task.deterministic) return "";
  return task.partition == Partition::kGlobal ? "synchronous" : "";
}

void train_synchronously(Context& context, GradientExchange& exchange, bool balance) {
  Batches batches = deal_batches(context, context.cluster.workers);
  Trainer trainer(context, exchange, balance);
  context.node.membership().end_waits_on_any_loss(true);
  run_steps(context, batches, trainer);
}

}  // namespace tutti

#include "strategies/pipeline/stage_update.h"

#include "collectives/all_reduce.h"
#include "strategies/compute.h"
#include "strategies/parameter_layout.h"

namespace tutti {
namespace {

class OwnUpdate : public StageUpdate {
 public:
  OwnUpdate(Context& context, const Placement& placement, const PipelineConfig& config,
            size_t stage, size_t shard, StageModel& model)
      : context_(context),
        stage_(stage),
        model_(model),
        layout_(layout_of(model.architecture())),
        optimizer_(make_optimizer(context.optimizer, layout_)) {
    const Group holders = placement.holders(stage, shard, context.node.endpoint().rank());
    if (holders.size() > 1)
      sum_ =
          make_all_reduce(context.node, &context.watch, topology(config.topology).rounds, holders,
                          model.parameters().size(), reduction_of(sum_kind(context.task)));
  }

  void share(GradientSum& gradient, uint64_t step) override {
    if (!sum_) return;
    sum_->start(gradient.bytes(), Tag(Purpose::kGradient, Tag::wrapped(step), stage_));
    sum_->finish();
  }

  void update(GradientSum& gradient, double rate) override {
    PhaseScope scope(context_.watch, Phase::kAggregate);
    const std::span<const float> values = gradient.values();
    update_parameters(context_, layout_, *optimizer_, model_.parameters(), values, rate);
  }

 private:
  Context& context_;
  size_t stage_;
  StageModel& model_;
  Layout layout_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<AllReduce> sum_;
};

}  // namespace

std::unique_ptr<StageUpdate> make_own_update(Context& context, const Placement& placement,
                                             const PipelineConfig& config, size_t stage,
                                             size_t shard, StageModel& model) {
  return std::make_unique<OwnUpdate>(context, placement, config, stage, shard, model);
}

}  // namespace tutti

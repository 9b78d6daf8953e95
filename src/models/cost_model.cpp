#include <algorithm>

#include "core/bytes.h"
#include "models/shard.h"
#include "models/split_loss.h"
#include "models/stage.h"

namespace tutti {
namespace {

// Its outputs have the right sizes; nobody reads or writes them. A shard sums over them all the
// same.
class CostStage : public StageModel {
 public:
  CostStage(Architecture stage, const ModelMemory& memory, ShardGroup* group = nullptr)
      : architecture_(std::move(stage)), memory_(memory), group_(group) {}

  const Architecture& architecture() const override { return architecture_; }
  std::span<float> parameters() override { return memory_.parameters; }
  std::span<float> gradients() override { return memory_.gradients; }

  std::span<const float> forward(size_t slot, const Batch& batch, std::span<const float>,
                                 std::optional<float>) override {
    if (samples_.size() <= slot) samples_.resize(slot + 1);
    samples_[slot] = batch.size();
    if (group_)
      for (const ShardSum& sum : forward_sums(architecture_))
        group_->sum(unwritten(batch.size() * sum.values));
    return unwritten(batch.size() * output_values(architecture_));
  }
  double loss(size_t, const Batch& batch, float) override {
    exchange_scores(batch);
    if (architecture_.shard.splits_scores() && architecture_.l2 > 0) group_->sum(unwritten(1));
    return 0;
  }
  Evaluation evaluate(size_t, const Batch& batch) override {
    exchange_scores(batch);
    return {.count = batch.size()};
  }
  std::span<const float> backward(size_t slot, std::span<float>) override {
    if (group_)
      for (const ShardSum& sum : backward_sums(architecture_))
        group_->sum(unwritten(samples_.at(slot) * sum.values));
    if (architecture_.place.layer == 0) return {};
    return unwritten(samples_.at(slot) * input_values(architecture_));
  }

 private:
  void exchange_scores(const Batch& batch) {
    if (!architecture_.shard.splits_scores()) return;
    const size_t rows = batch.size() * static_cast<size_t>(architecture_.positions);
    group_->maximum(unwritten(split_loss_maximum(rows)));
    group_->sum(unwritten(split_loss_sum(rows)));
  }
  std::span<float> unwritten(size_t size) {
    if (size > unwritten_.size()) unwritten_ = Buffer<float>(size);
    return unwritten_.span().first(size);
  }

  Architecture architecture_;
  ModelMemory memory_;
  ShardGroup* group_;
  std::vector<size_t> samples_;  // of each slot
  Buffer<float> unwritten_;
};

// Only the sizes of its spans are used, so that thousands of replicas need no memory.
class CostModel : public Model {
 public:
  CostModel(const Architecture& architecture, const ModelMemory& memory)
      : architecture_(architecture), memory_(memory), ranges_(ready_ranges(architecture)) {}

  const Architecture& architecture() const override { return architecture_; }
  std::span<float> parameters() override { return memory_.parameters; }
  std::span<float> gradients() override { return memory_.gradients; }

  double gradient(const Batch&, float, const Ready& ready) override {
    if (ready)
      for (Range range : ranges_) ready(range);
    return 0;
  }

  Evaluation evaluate(const Batch& batch) override { return {.count = batch.size()}; }

  void predict(const Batch&, std::span<float> scores) override {
    std::fill(scores.begin(), scores.end(), 0.0F);
  }

  std::unique_ptr<StageModel> stage(Range layers) override {
    Architecture stage = stage_of(architecture_, layers);
    const ModelMemory memory = part_of_memory(memory_, architecture_, stage);
    return std::make_unique<CostStage>(std::move(stage), memory);
  }

 private:
  Architecture architecture_;
  ModelMemory memory_;
  std::vector<Range> ranges_;
};

std::unique_ptr<Model> make_cost_model(const Architecture& architecture, const ModelMemory& memory,
                                       const ModelOptions&) {
  return std::make_unique<CostModel>(architecture, memory);
}

std::unique_ptr<StageModel> make_cost_part(const Architecture& part, const ModelMemory& memory,
                                           const ModelOptions&, ShardGroup* group) {
  return std::make_unique<CostStage>(part, memory, group);
}

}  // namespace

const ModelMaker kCostModels = {.whole = make_cost_model, .part = make_cost_part};

}  // namespace tutti

#include "models/torch/torch_stage.h"

#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>

#include "core/error.h"
#include "models/objective.h"
#include "models/split_loss.h"
#include "models/torch/layer_stack.h"
#include "models/torch/tensors.h"

namespace tutti {
namespace {

at::Tensor from_memory_order(float* data, size_t samples, const std::vector<int64_t>& shape) {
  std::vector<int64_t> sizes = {static_cast<int64_t>(samples)};
  if (shape.size() != 3) {
    sizes.insert(sizes.end(), shape.begin(), shape.end());
    return at::from_blob(data, sizes, at::kFloat);
  }
  sizes.insert(sizes.end(), {shape[1], shape[2], shape[0]});
  return at::from_blob(data, sizes, at::kFloat).permute({0, 3, 1, 2});
}

class TorchStage : public StageModel {
 public:
  TorchStage(const Architecture& part, const ModelMemory& memory, uint64_t seed, ShardGroup* group)
      : architecture_(part),
        memory_(memory),
        seed_(seed),
        group_(group),
        objective_(architecture_) {
    TUTTI_CHECK(memory.parameters.size() == architecture_.parameter_count);
    // The loss, and with it the scale of the penalty, is known to the last stage alone.
    TUTTI_CHECK(group_ || (architecture_.l2 == 0 && architecture_.l1 == 0) ||
                (is_first() && architecture_.place.last));
    // Sums of squares of weights are known where all of them are split, or none.
    TUTTI_CHECK(!group_ || architecture_.l2 == 0 || architecture_.layers.size() <= 3);
  }

  const Architecture& architecture() const override { return architecture_; }
  std::span<float> parameters() override { return memory_.parameters; }
  std::span<float> gradients() override { return memory_.gradients; }

  std::span<const float> forward(size_t index, const Batch& batch, std::span<const float> input,
                                 std::optional<float> scale) override {
    if (is_first()) input = batch.features;
    TUTTI_CHECK(input.size() == batch.size() * input_values(architecture_));
    Slot& slot = slot_at(index);
    slot.samples = batch.size();
    // Operations overwrite only what operations made; where the first one works in place, a copy.
    auto* data = const_cast<float*>(input.data());
    at::Tensor x = is_first() ? plain(data, batch.size())
                              : from_memory_order(data, batch.size(), architecture_.input);
    if (architecture_.layers.front().kind == LayerKind::kPosition) x = x.clone();
    slot.output =
        in_memory_order(slot.layers.forward(x, {batch, scale.has_value(), scale.value_or(1)}));
    return values(slot.output);
  }

  double loss(size_t index, const Batch& batch, float scale) override {
    TUTTI_CHECK(architecture_.place.last);
    Slot& slot = slot_at(index);
    const std::span<const float> scores = values(slot.output);
    slot.slopes.resize(scores.size());
    slot.scale = scale;
    if (architecture_.shard.splits_scores())
      return split_loss(batch, scores, scale, slot.slopes).loss +
             static_cast<double>(batch.size()) * split_penalty();
    return objective_.loss(scores, batch, 0, batch.size(), scale, slot.slopes) +
           static_cast<double>(batch.size()) * objective_.penalty(memory_.parameters);
  }

  Evaluation evaluate(size_t index, const Batch& batch) override {
    TUTTI_CHECK(architecture_.place.last);
    const std::span<const float> scores = values(slot_at(index).output);
    if (architecture_.shard.splits_scores()) {
      const SplitLoss result = split_loss(batch, scores, 1, {});
      return {.loss = result.loss, .correct = result.correct, .count = batch.size()};
    }
    return {.loss = objective_.loss(scores, batch, 0, batch.size(), 1, {}),
            .correct = objective_.correct(scores, batch, 0, batch.size()),
            .count = batch.size()};
  }

  std::span<const float> backward(size_t index, std::span<float> slope) override {
    Slot& slot = slot_at(index);
    if (architecture_.place.last) slope = slot.slopes;
    TUTTI_CHECK(slope.size() == slot.samples * output_values(architecture_));
    const double factor = static_cast<double>(slot.scale) * static_cast<double>(slot.samples);
    const at::Tensor input_slope = slot.layers.backward(
        from_memory_order(slope.data(), slot.samples, architecture_.layers.back().output),
        !is_first(), [&](const Layer& layer) {
          objective_.penalise(layer, factor, memory_.parameters, memory_.gradients);
        });
    if (is_first()) return {};
    slot.input_slope = in_memory_order(input_slope);
    return values(slot.input_slope);
  }

 private:
  struct Slot {
    Slot(const Architecture& architecture, const ModelMemory& memory, uint64_t seed,
         ShardGroup* group)
        : layers(architecture, memory, seed, group) {}
    LayerStack layers;
    at::Tensor output, input_slope;
    std::vector<float> slopes;  // of the last stage: by the scores
    size_t samples = 0;
    float scale = 1;
  };

  bool is_first() const { return architecture_.place.layer == 0; }

  at::Tensor plain(float* data, size_t samples) const {
    std::vector<int64_t> shape = {static_cast<int64_t>(samples)};
    shape.insert(shape.end(), architecture_.input.begin(), architecture_.input.end());
    return at::from_blob(data, shape, at::kFloat);
  }

  Slot& slot_at(size_t index) {
    while (slots_.size() <= index)
      slots_.push_back(std::make_unique<Slot>(architecture_, memory_, seed_, group_));
    return *slots_[index];
  }

  // The same as Objective's, from the scores of all shards.
  SplitLoss split_loss(const Batch& batch, std::span<const float> scores, float scale,
                       std::span<float> slopes) {
    const auto positions = static_cast<double>(architecture_.positions);
    SplitLoss result = split_cross_entropy(
        scores, batch.labels, architecture_.shard.scores,
        static_cast<size_t>(architecture_.outputs),
        static_cast<float>(static_cast<double>(scale) / positions), slopes, *group_);
    result.loss /= positions;
    result.correct /= positions;
    return result;
  }

  double split_penalty() {
    if (architecture_.l2 == 0) return 0;
    auto penalty = static_cast<float>(objective_.penalty(memory_.parameters));
    group_->sum({&penalty, 1});
    return static_cast<double>(penalty);
  }

  Architecture architecture_;
  ModelMemory memory_;
  uint64_t seed_;
  ShardGroup* group_;
  Objective objective_;
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace

void use_threads(int count) {
  if (at::get_num_threads() != count) at::set_num_threads(count);
}

std::unique_ptr<StageModel> make_torch_part(const Architecture& part, const ModelMemory& memory,
                                            const ModelOptions& options, ShardGroup* group) {
  use_threads(options.threads);
  return std::make_unique<TorchStage>(part, memory, options.seed, group);
}

}  // namespace tutti

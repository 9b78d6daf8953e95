// The model that computes: runs an Architecture's layers by LibTorch over the caller's memory.
#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "models/builder.h"
#include "models/model.h"
#include "models/objective.h"
#include "models/torch/layer_stack.h"
#include "models/torch/tensors.h"
#include "models/torch/torch_stage.h"

namespace tutti {
namespace {

// Large evaluations go through in slices, which bounds the memory for activations.
constexpr size_t kSlice = 64;

class TorchModel : public Model {
 public:
  TorchModel(const Architecture& architecture, const ModelMemory& memory,
             const ModelOptions& options)
      : architecture_(architecture),
        memory_(memory),
        seed_(options.seed),
        objective_(architecture_) {
    TUTTI_CHECK(memory.parameters.size() == architecture.parameter_count);
    TUTTI_CHECK(memory.gradients.empty() ||
                memory.gradients.size() == architecture.parameter_count);
    use_threads(options.threads);
    layers_.emplace(architecture_, memory_, seed_);
  }

  const Architecture& architecture() const override { return architecture_; }
  std::span<float> parameters() override { return memory_.parameters; }
  std::span<float> gradients() override { return memory_.gradients; }

  double gradient(const Batch& batch, float scale, const Ready& ready) override {
    if (batch.size() == 0) {
      std::fill(memory_.gradients.begin(), memory_.gradients.end(), 0.0F);
      if (ready)
        for (Range range : ready_ranges(architecture_)) ready(range);
      return 0;
    }
    const at::Tensor scores = forward(batch, 0, batch.size(), scale);
    slopes_.resize(static_cast<size_t>(scores.numel()));
    const double loss = objective_.loss(values(scores), batch, 0, batch.size(), scale, slopes_);
    const auto count = static_cast<double>(batch.size());
    layers_->backward(at::from_blob(slopes_.data(), scores.sizes(), at::kFloat),
                      /*input_needed=*/false, [&](const Layer& layer) {
                        objective_.penalise(layer, static_cast<double>(scale) * count,
                                            memory_.parameters, memory_.gradients);
                        if (ready) ready(range_of(layer));
                      });
    return loss + count * objective_.penalty(memory_.parameters);
  }

  Evaluation evaluate(const Batch& batch) override {
    Evaluation result{.count = batch.size()};
    for (size_t begin = 0; begin < batch.size(); begin += kSlice) {
      const size_t size = std::min(kSlice, batch.size() - begin);
      const at::Tensor scores = forward(batch, begin, size);
      result.loss += objective_.loss(values(scores), batch, begin, size, 1, {});
      result.correct += objective_.correct(values(scores), batch, begin, size);
    }
    return result;
  }

  void predict(const Batch& batch, std::span<float> scores) override {
    const auto outputs = static_cast<size_t>(architecture_.positions * architecture_.outputs);
    TUTTI_CHECK(scores.size() == batch.size() * outputs);
    for (size_t begin = 0; begin < batch.size(); begin += kSlice) {
      const size_t size = std::min(kSlice, batch.size() - begin);
      const auto slice = values(forward(batch, begin, size));
      std::copy(slice.begin(), slice.end(),
                scores.begin() + static_cast<ptrdiff_t>(begin * outputs));
    }
  }

  std::unique_ptr<StageModel> stage(Range layers) override {
    const Architecture own = stage_of(architecture_, layers);
    return make_torch_part(own, part_of_memory(memory_, architecture_, own),
                           {.seed = seed_, .threads = at::get_num_threads()}, nullptr);
  }

 private:
  // The scores of `size` samples of the batch from `begin` on; for training with the scale of the
  // gradients to come.
  at::Tensor forward(const Batch& batch, size_t begin, size_t size,
                     std::optional<float> scale = {}) {
    const auto width = static_cast<size_t>(elements(architecture_.input));
    TUTTI_CHECK(batch.features.size() == batch.size() * width);
    std::vector<int64_t> shape = {static_cast<int64_t>(size)};
    shape.insert(shape.end(), architecture_.input.begin(), architecture_.input.end());
    // Operations overwrite only what operations made, never the batch.
    auto* features = const_cast<float*>(batch.features.data() + begin * width);
    LayerStack::Done before;
    if (scale && needed_) before = [&](const Layer& layer) { needed_(range_of(layer)); };
    return layers_->forward(at::from_blob(features, shape, at::kFloat),
                            {batch, scale.has_value(), scale.value_or(1)}, before);
  }

  Range range_of(const Layer& layer) const {
    return {architecture_.parameters[layer.parameters.front()].range.begin,
            architecture_.parameters[layer.parameters.back()].range.end};
  }

  Architecture architecture_;
  ModelMemory memory_;
  uint64_t seed_;
  Objective objective_;
  std::optional<LayerStack> layers_;
  std::vector<float> slopes_;
};

std::unique_ptr<Model> make_torch_model(const Architecture& architecture, const ModelMemory& memory,
                                        const ModelOptions& options) {
  return std::make_unique<TorchModel>(architecture, memory, options);
}

}  // namespace
}  // namespace tutti

const tutti::ModelMaker tutti_torch_models = {.whole = &tutti::make_torch_model,
                                              .part = &tutti::make_torch_part};

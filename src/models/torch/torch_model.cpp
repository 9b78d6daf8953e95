// The model that computes: runs an Architecture's layers by LibTorch over the caller's memory.
#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>

#include "core/error.h"
#include "models/builder.h"
#include "models/losses.h"
#include "models/model.h"
#include "models/torch/operation.h"

namespace tutti {
namespace {

// Large evaluations go through in slices, which bounds the memory for activations.
constexpr size_t kSlice = 64;

std::span<float> values(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

class TorchModel : public Model {
 public:
  TorchModel(const Architecture& architecture, const ModelMemory& memory,
             const ModelOptions& options)
      : architecture_(architecture), memory_(memory) {
    TUTTI_CHECK(memory.parameters.size() == architecture.parameter_count);
    TUTTI_CHECK(memory.gradients.size() == architecture.parameter_count);
    if (at::get_num_threads() != options.threads) at::set_num_threads(options.threads);
    steps_ = make_steps(architecture_, memory_, options.seed);
    while (layer_of(steps_[first_trained_]).parameters.empty()) ++first_trained_;
  }

  const Architecture& architecture() const override { return architecture_; }
  std::span<float> parameters() override { return memory_.parameters; }
  std::span<float> gradients() override { return memory_.gradients; }
  std::span<float> buffers() override { return {}; }

  double gradient(const Batch& batch, float scale, const Ready& ready) override {
    if (batch.size() == 0) {
      std::fill(memory_.gradients.begin(), memory_.gradients.end(), 0.0F);
      if (ready)
        for (Range range : ready_ranges(architecture_)) ready(range);
      return 0;
    }
    const at::Tensor scores = forward(batch, 0, batch.size(), true);
    slopes_.resize(static_cast<size_t>(scores.numel()));
    const double loss = loss_of(scores, batch, 0, batch.size(), scale, slopes_);
    const auto count = static_cast<double>(batch.size());
    at::Tensor slope = at::from_blob(slopes_.data(), scores.sizes(), at::kFloat);
    for (size_t i = steps_.size(); i-- > first_trained_;) {
      slope = steps_[i].operation->backward(slope, i > first_trained_);
      const Layer& layer = layer_of(steps_[i]);
      if (layer.parameters.empty()) continue;
      penalise(layer, static_cast<double>(scale) * count);
      if (ready) ready(range_of(layer));
    }
    return loss + count * penalty();
  }

  Evaluation evaluate(const Batch& batch) override {
    Evaluation result{.count = batch.size()};
    for (size_t begin = 0; begin < batch.size(); begin += kSlice) {
      const size_t size = std::min(kSlice, batch.size() - begin);
      const at::Tensor scores = forward(batch, begin, size, false);
      result.loss += loss_of(scores, batch, begin, size, 1, {});
      if (architecture_.classification)
        result.correct +=
            static_cast<double>(count_correct(values(scores), labels_of(batch, begin, size))) /
            static_cast<double>(architecture_.positions);
    }
    return result;
  }

  void predict(const Batch& batch, std::span<float> scores) override {
    const auto outputs = static_cast<size_t>(architecture_.positions * architecture_.outputs);
    TUTTI_CHECK(scores.size() == batch.size() * outputs);
    for (size_t begin = 0; begin < batch.size(); begin += kSlice) {
      const size_t size = std::min(kSlice, batch.size() - begin);
      const auto slice = values(forward(batch, begin, size, false));
      std::copy(slice.begin(), slice.end(),
                scores.begin() + static_cast<ptrdiff_t>(begin * outputs));
    }
  }

 private:
  // The scores of `size` samples of the batch from `begin` on.
  at::Tensor forward(const Batch& batch, size_t begin, size_t size, bool training) {
    const auto width = static_cast<size_t>(elements(architecture_.input));
    TUTTI_CHECK(batch.features.size() == batch.size() * width);
    std::vector<int64_t> shape = {static_cast<int64_t>(size)};
    shape.insert(shape.end(), architecture_.input.begin(), architecture_.input.end());
    // Operations overwrite only what operations made, never the batch.
    auto* features = const_cast<float*>(batch.features.data() + begin * width);
    at::Tensor x = at::from_blob(features, shape, at::kFloat);
    for (const Step& step : steps_) x = step.operation->forward(x, {batch, training});
    return x;
  }

  // The loss of a sequence is the mean over its positions.
  double loss_of(const at::Tensor& scores, const Batch& batch, size_t begin, size_t size,
                 float scale, std::span<float> slopes) {
    if (architecture_.classification) {
      const auto positions = static_cast<double>(architecture_.positions);
      return cross_entropy(values(scores), labels_of(batch, begin, size),
                           static_cast<float>(static_cast<double>(scale) / positions), slopes) /
             positions;
    }
    TUTTI_CHECK(batch.targets.size() == batch.size());
    return half_squared_error(values(scores), std::span(batch.targets).subspan(begin, size), scale,
                              slopes);
  }

  // Those of the samples from `begin` on: one at each position.
  std::span<const int32_t> labels_of(const Batch& batch, size_t begin, size_t size) const {
    const auto positions = static_cast<size_t>(architecture_.positions);
    TUTTI_CHECK(batch.labels.size() == batch.size() * positions);
    return std::span(batch.labels).subspan(begin * positions, size * positions);
  }

  const Layer& layer_of(const Step& step) const { return architecture_.layers[step.layer]; }

  Range range_of(const Layer& layer) const {
    return {architecture_.parameters[layer.parameters.front()].range.begin,
            architecture_.parameters[layer.parameters.back()].range.end};
  }

  // Each sample brings its own penalty on the weights (not the biases), so that shares of a batch
  // add up to the whole.
  void penalise(const Layer& layer, double factor) {
    if (architecture_.l2 == 0) return;
    const auto slope = static_cast<float>(factor * architecture_.l2);
    const Range range = architecture_.parameters[layer.parameters.front()].range;
    for (size_t i = range.begin; i < range.end; ++i)
      memory_.gradients[i] += slope * memory_.parameters[i];
  }

  double penalty() const {
    if (architecture_.l2 == 0) return 0;
    double squares = 0;
    for (const Layer& layer : architecture_.layers) {
      if (layer.parameters.empty()) continue;
      const Range range = architecture_.parameters[layer.parameters.front()].range;
      for (float weight : memory_.parameters.subspan(range.begin, range.size()))
        squares += static_cast<double>(weight) * static_cast<double>(weight);
    }
    return architecture_.l2 / 2 * squares;
  }

  Architecture architecture_;
  ModelMemory memory_;
  std::vector<Step> steps_;
  size_t first_trained_ = 0;  // no step below this one needs a gradient
  std::vector<float> slopes_;
};

std::unique_ptr<Model> make_torch_model(const Architecture& architecture, const ModelMemory& memory,
                                        const ModelOptions& options) {
  return std::make_unique<TorchModel>(architecture, memory, options);
}

}  // namespace
}  // namespace tutti

const tutti::MakeModel tutti_make_torch_model = &tutti::make_torch_model;

#include <algorithm>

#include "core/bytes.h"
#include "models/stage.h"

namespace tutti {
namespace {

// Its outputs have the right sizes; nobody reads or writes them.
class CostStage : public StageModel {
 public:
  CostStage(const Architecture& whole, Range layers, const ModelMemory& memory)
      : architecture_(stage_of(whole, layers)), memory_(memory) {}

  const Architecture& architecture() const override { return architecture_; }
  std::span<float> parameters() override { return own(memory_.parameters); }
  std::span<float> gradients() override { return own(memory_.gradients); }

  std::span<const float> forward(size_t slot, const Batch& batch, std::span<const float>,
                                 bool) override {
    if (samples_.size() <= slot) samples_.resize(slot + 1);
    samples_[slot] = batch.size();
    return unwritten(batch.size() * output_values(architecture_));
  }
  double loss(size_t, const Batch&, float) override { return 0; }
  Evaluation evaluate(size_t, const Batch& batch) override { return {.count = batch.size()}; }
  std::span<const float> backward(size_t slot, std::span<float>) override {
    if (architecture_.place.layer == 0) return {};
    return unwritten(samples_.at(slot) * input_values(architecture_));
  }

 private:
  std::span<float> own(std::span<float> whole) const {
    return whole.subspan(architecture_.place.value, architecture_.parameter_count);
  }
  std::span<const float> unwritten(size_t size) {
    if (size > unwritten_.size()) unwritten_ = Buffer<float>(size);
    return unwritten_.span().first(size);
  }

  Architecture architecture_;
  ModelMemory memory_;
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
  std::span<float> buffers() override { return {}; }

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
    return std::make_unique<CostStage>(architecture_, layers, memory_);
  }

 private:
  Architecture architecture_;
  ModelMemory memory_;
  std::vector<Range> ranges_;
};

}  // namespace

std::unique_ptr<Model> make_cost_model(const Architecture& architecture, const ModelMemory& memory,
                                       const ModelOptions&) {
  return std::make_unique<CostModel>(architecture, memory);
}

}  // namespace tutti

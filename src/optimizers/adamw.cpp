// AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019): the decay
// shrinks the parameters directly instead of passing through Adam's moments.
#include "optimizers/adam.h"
#include "optimizers/kinds.h"

namespace tutti {
namespace {

class AdamW : public Optimizer {
 public:
  AdamW(const OptimizerConfig& config, size_t size)
      : moments_(config, size), weight_decay_(config.weight_decay) {}

  void step(std::span<float> x, std::span<const float> g, double lr) override {
    const auto keep = static_cast<float>(1 - lr * weight_decay_);
    if (keep != 1)
      for (float& value : x) value *= keep;
    moments_.update(x, g, lr);
  }
  std::vector<std::span<float>> state() override { return moments_.state(); }
  int64_t steps() const override { return moments_.steps(); }
  void resume(int64_t steps) override { moments_.resume(steps); }

 private:
  AdamMoments moments_;
  double weight_decay_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adamw(const OptimizerConfig& config, const Layout& layout) {
  return std::make_unique<AdamW>(config, layout.size);
}

}  // namespace tutti

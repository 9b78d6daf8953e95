// AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019): the decay
// shrinks the parameters directly instead of passing through Adam's moments.
#include "optimizers/adamw.h"

namespace tutti {
namespace {

class AdamW : public Optimizer {
 public:
  AdamW(const AdamSettings& settings, double weight_decay, size_t size)
      : moments_(settings, size), weight_decay_(weight_decay) {}

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

std::unique_ptr<Optimizer> AdamwRule::make(const Layout& layout, double decay) const {
  return std::make_unique<AdamW>(moments, decay, layout.size);
}

}  // namespace tutti

// Coupled weight decay: the gradient of decay/2 |x|^2 is added to that of the loss.
#include "core/bytes.h"
#include "core/error.h"
#include "optimizers/decorators.h"

namespace tutti {
namespace {

class WeightDecay : public Optimizer {
 public:
  WeightDecay(std::unique_ptr<Optimizer> inner, double decay, size_t size)
      : inner_(std::move(inner)), decay_(static_cast<float>(decay)), sum_(size) {}

  void step(std::span<float> x, std::span<const float> g, double lr) override {
    TUTTI_CHECK(x.size() == sum_.size() && g.size() == sum_.size());
    const float decay = decay_;
    float* sum = sum_.data();
    for (size_t i = 0; i < g.size(); ++i) sum[i] = g[i] + decay * x[i];
    inner_->step(x, sum_.span(), lr);
  }
  std::vector<std::span<float>> state() override { return inner_->state(); }
  int64_t steps() const override { return inner_->steps(); }
  void resume(int64_t steps) override { inner_->resume(steps); }

 private:
  std::unique_ptr<Optimizer> inner_;
  float decay_;
  Buffer<float> sum_;  // scratch: gradients belong to the caller, who may still be sending them
};

}  // namespace

std::unique_ptr<Optimizer> with_weight_decay(std::unique_ptr<Optimizer> inner, double decay,
                                             size_t size) {
  return std::make_unique<WeightDecay>(std::move(inner), decay, size);
}

}  // namespace tutti

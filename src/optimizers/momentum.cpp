// Momentum (Polyak, "Some methods of speeding up the convergence of iteration methods", 1964):
//   v = mu v - lr g;  x += v.
//
// The rate is inside the velocity, so that a change of rate acts on new gradients only. PyTorch
// keeps v = mu v + g and steps by lr v: the same at a constant rate, different once it changes.
#include "core/error.h"
#include "optimizers/kinds.h"

namespace tutti {
namespace {

class Momentum : public Optimizer {
 public:
  Momentum(double momentum, size_t size)
      : momentum_(static_cast<float>(momentum)), velocity_(size) {}

  void step(std::span<float> x, std::span<const float> g, double lr) override {
    const size_t size = velocity_.size();
    TUTTI_CHECK(x.size() == size && g.size() == size);
    const float rate = static_cast<float>(lr), mu = momentum_;
    float* v = velocity_.data();
    for (size_t i = 0; i < size; ++i) {
      v[i] = mu * v[i] - rate * g[i];
      x[i] += v[i];
    }
    ++steps_;
  }
  std::vector<std::span<float>> state() override { return {velocity_}; }
  int64_t steps() const override { return steps_; }

 private:
  float momentum_;
  std::vector<float> velocity_;
  int64_t steps_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> make_momentum(const OptimizerConfig& config, const Layout& layout) {
  return std::make_unique<Momentum>(config.momentum, layout.size);
}

}  // namespace tutti

// Momentum (Polyak, "Some methods of speeding up the convergence of iteration methods", 1964):
//   v = mu v - lr g;  x += v.
//
// The rate is inside the velocity, so that a change of rate acts on new gradients only. PyTorch
// keeps v = mu v + g and steps by lr v: the same at a constant rate, different once it changes.
#include "optimizers/momentum.h"

#include "core/error.h"

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

void visit_momentum(Visitor& v, double& momentum) {
  v.field("momentum", momentum, kBelowOne,
          "share of the velocity that is kept; the rate is part of the velocity (v = momentum * v "
          "- lr * g), so a change of the rate takes effect gradually, unlike in PyTorch");
}

void MomentumRule::visit(Visitor& v) { visit_momentum(v, momentum); }

std::unique_ptr<Optimizer> MomentumRule::make(const Layout& layout, double) const {
  return std::make_unique<Momentum>(momentum, layout.size);
}

}  // namespace tutti

// Nesterov's accelerated gradient, in the form whose gradient is taken at the looked-ahead point
// (Sutskever et al., "On the importance of initialization and momentum in deep learning", ICML
// 2013, after the change of variable of Bengio et al., arXiv:1212.0901):
//   v' = mu v - lr g;  x += -mu v + (1 + mu) v'.
//
// As with momentum the rate is inside the velocity: equal to PyTorch's at a constant rate.
#include "optimizers/nesterov.h"

#include "core/error.h"
#include "optimizers/momentum.h"

namespace tutti {
namespace {

class Nesterov : public Optimizer {
 public:
  Nesterov(double momentum, size_t size)
      : momentum_(static_cast<float>(momentum)), velocity_(size) {}

  void step(std::span<float> x, std::span<const float> g, double lr) override {
    const size_t size = velocity_.size();
    TUTTI_CHECK(x.size() == size && g.size() == size);
    const float rate = static_cast<float>(lr), mu = momentum_, ahead = 1 + momentum_;
    float* v = velocity_.data();
    for (size_t i = 0; i < size; ++i) {
      const float carried = mu * v[i];
      v[i] = carried - rate * g[i];
      x[i] += ahead * v[i] - carried;
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

void NesterovRule::visit(Visitor& v) { visit_momentum(v, momentum); }

std::unique_ptr<Optimizer> NesterovRule::make(const Layout& layout, double) const {
  return std::make_unique<Nesterov>(momentum, layout.size);
}

}  // namespace tutti

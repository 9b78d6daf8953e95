// AdaGrad (Duchi, Hazan and Singer, "Adaptive subgradient methods", JMLR 12, 2011):
//   c += g^2;  x -= lr g / (sqrt(c) + eps).
#include "optimizers/adagrad.h"

#include <cmath>

#include "core/error.h"

namespace tutti {
namespace {

class Adagrad : public Optimizer {
 public:
  Adagrad(double eps, size_t size) : eps_(static_cast<float>(eps)), squares_(size) {}

  void step(std::span<float> x, std::span<const float> g, double lr) override {
    const size_t size = squares_.size();
    TUTTI_CHECK(x.size() == size && g.size() == size);
    const float rate = static_cast<float>(lr), eps = eps_;
    float* c = squares_.data();
    for (size_t i = 0; i < size; ++i) {
      c[i] += g[i] * g[i];
      x[i] -= rate * g[i] / (std::sqrt(c[i]) + eps);
    }
    ++steps_;
  }
  std::vector<std::span<float>> state() override { return {squares_}; }
  int64_t steps() const override { return steps_; }

 private:
  float eps_;
  std::vector<float> squares_;
  int64_t steps_ = 0;
};

}  // namespace

void visit_eps(Visitor& v, double& eps) {
  v.field("eps", eps, kPositive, "added to the root of the squares, against division by zero");
}

void AdagradRule::visit(Visitor& v) { visit_eps(v, eps); }

std::unique_ptr<Optimizer> AdagradRule::make(const Layout& layout, double) const {
  return std::make_unique<Adagrad>(eps, layout.size);
}

}  // namespace tutti

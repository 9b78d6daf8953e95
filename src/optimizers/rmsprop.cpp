// RMSprop (Tieleman and Hinton, "Neural networks for machine learning", lecture 6.5, 2012):
//   c = d c + (1 - d) g^2;  x -= lr g / (sqrt(c) + eps).
#include "optimizers/rmsprop.h"

#include <cmath>

#include "core/error.h"
#include "optimizers/adagrad.h"

namespace tutti {
namespace {

class Rmsprop : public Optimizer {
 public:
  Rmsprop(double decay, double eps, size_t size)
      : decay_(static_cast<float>(decay)),
        fresh_(static_cast<float>(1 - decay)),
        eps_(static_cast<float>(eps)),
        squares_(size) {}

  void step(std::span<float> x, std::span<const float> g, double lr) override {
    const size_t size = squares_.size();
    TUTTI_CHECK(x.size() == size && g.size() == size);
    const float rate = static_cast<float>(lr), decay = decay_, fresh = fresh_, eps = eps_;
    float* c = squares_.data();
    for (size_t i = 0; i < size; ++i) {
      c[i] = decay * c[i] + fresh * (g[i] * g[i]);
      x[i] -= rate * g[i] / (std::sqrt(c[i]) + eps);
    }
    ++steps_;
  }
  std::vector<std::span<float>> state() override { return {squares_}; }
  int64_t steps() const override { return steps_; }

 private:
  float decay_, fresh_, eps_;
  std::vector<float> squares_;
  int64_t steps_ = 0;
};

}  // namespace

void RmspropRule::visit(Visitor& v) {
  v.field("decay", decay, kBelowOne, "share of the mean of squares that is kept");
  visit_eps(v, eps);
}

std::unique_ptr<Optimizer> RmspropRule::make(const Layout& layout, double) const {
  return std::make_unique<Rmsprop>(decay, eps, layout.size);
}

}  // namespace tutti

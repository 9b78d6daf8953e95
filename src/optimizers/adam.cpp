// Adam (Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015).
#include "optimizers/adam.h"

#include <cmath>

#include "core/error.h"
#include "optimizers/kinds.h"

namespace tutti {

AdamMoments::AdamMoments(const OptimizerConfig& config, size_t size)
    : beta1_(config.beta1), beta2_(config.beta2), eps_(config.eps), mean_(size), squares_(size) {}

AdamMoments::Coefficients AdamMoments::begin_step(double lr) {
  const auto t = static_cast<double>(++steps_);
  // In double: 1 - b2^t loses half the digits of a float at small t.
  return {.b1 = static_cast<float>(beta1_),
          .b2 = static_cast<float>(beta2_),
          .fresh1 = static_cast<float>(1 - beta1_),
          .fresh2 = static_cast<float>(1 - beta2_),
          .eps = static_cast<float>(eps_),
          .rate = static_cast<float>(lr / (1 - std::pow(beta1_, t))),
          .unbias = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2_, t)))};
}

void AdamMoments::update(std::span<float> x, std::span<const float> g, double lr) {
  const size_t size = mean_.size();
  TUTTI_CHECK(x.size() == size && g.size() == size);
  const Coefficients c = begin_step(lr);
  float* m = mean_.data();
  float* v = squares_.data();
  for (size_t i = 0; i < size; ++i) {
    m[i] = c.b1 * m[i] + c.fresh1 * g[i];
    v[i] = c.b2 * v[i] + c.fresh2 * (g[i] * g[i]);
    x[i] -= c.rate * m[i] / (std::sqrt(v[i]) * c.unbias + c.eps);
  }
}

void AdamMoments::direction(std::span<const float> g, std::span<float> u) {
  const size_t size = mean_.size();
  TUTTI_CHECK(u.size() == size && g.size() == size);
  const Coefficients c = begin_step(1);
  float* m = mean_.data();
  float* v = squares_.data();
  for (size_t i = 0; i < size; ++i) {
    m[i] = c.b1 * m[i] + c.fresh1 * g[i];
    v[i] = c.b2 * v[i] + c.fresh2 * (g[i] * g[i]);
    u[i] = c.rate * m[i] / (std::sqrt(v[i]) * c.unbias + c.eps);
  }
}

namespace {

class Adam : public Optimizer {
 public:
  Adam(const OptimizerConfig& config, size_t size) : moments_(config, size) {}

  void step(std::span<float> x, std::span<const float> g, double lr) override {
    moments_.update(x, g, lr);
  }
  std::vector<std::span<float>> state() override { return moments_.state(); }
  int64_t steps() const override { return moments_.steps(); }
  void resume(int64_t steps) override { moments_.resume(steps); }

 private:
  AdamMoments moments_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adam(const OptimizerConfig& config, const Layout& layout) {
  return std::make_unique<Adam>(config, layout.size);
}

}  // namespace tutti

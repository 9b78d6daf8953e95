// Adam (Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015).
#include "optimizers/adam.h"

#include <cmath>

#include "core/error.h"
#include "optimizers/adagrad.h"

namespace tutti {

// Shares below one, or the means never forget and the corrections divide by zero.
void AdamSettings::visit(Visitor& v) {
  v.field("beta1", beta1, kBelowOne, "share of the mean that is kept");
  v.field("beta2", beta2, kBelowOne, "share of the mean of squares that is kept");
  visit_eps(v, eps);
}

AdamMoments::AdamMoments(const AdamSettings& settings, size_t size)
    : settings_(settings), mean_(size), squares_(size) {}

AdamMoments::Coefficients AdamMoments::begin_step(double lr) {
  const auto t = static_cast<double>(++steps_);
  const auto& [beta1, beta2, eps] = settings_;
  // In double: 1 - b2^t loses half the digits of a float at small t.
  return {.b1 = static_cast<float>(beta1),
          .b2 = static_cast<float>(beta2),
          .fresh1 = static_cast<float>(1 - beta1),
          .fresh2 = static_cast<float>(1 - beta2),
          .eps = static_cast<float>(eps),
          .rate = static_cast<float>(lr / (1 - std::pow(beta1, t))),
          .unbias = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, t)))};
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
  Adam(const AdamSettings& settings, size_t size) : moments_(settings, size) {}

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

std::unique_ptr<Optimizer> AdamRule::make(const Layout& layout, double) const {
  return std::make_unique<Adam>(moments, layout.size);
}

}  // namespace tutti

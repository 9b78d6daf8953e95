// Adam (Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015).
#include "optimizers/adam.h"

#include <cmath>

#include "core/error.h"
#include "optimizers/kinds.h"

namespace tutti {

AdamMoments::AdamMoments(const OptimizerConfig& config, size_t size)
    : beta1_(config.beta1), beta2_(config.beta2), eps_(config.eps), mean_(size), squares_(size) {}

void AdamMoments::update(std::span<float> x, std::span<const float> g, double lr) {
  const size_t size = mean_.size();
  TUTTI_CHECK(x.size() == size && g.size() == size);
  ++steps_;
  const auto t = static_cast<double>(steps_);
  // In double: 1 - b2^t loses half the digits of a float at small t.
  const auto rate = static_cast<float>(lr / (1 - std::pow(beta1_, t)));
  const auto unbias = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2_, t)));
  const auto b1 = static_cast<float>(beta1_), b2 = static_cast<float>(beta2_);
  const auto fresh1 = static_cast<float>(1 - beta1_), fresh2 = static_cast<float>(1 - beta2_);
  const auto eps = static_cast<float>(eps_);
  float* m = mean_.data();
  float* v = squares_.data();
  for (size_t i = 0; i < size; ++i) {
    m[i] = b1 * m[i] + fresh1 * g[i];
    v[i] = b2 * v[i] + fresh2 * (g[i] * g[i]);
    x[i] -= rate * m[i] / (std::sqrt(v[i]) * unbias + eps);
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

std::unique_ptr<Optimizer> make_adam(const OptimizerConfig& config, size_t size) {
  return std::make_unique<Adam>(config, size);
}

}  // namespace tutti

#include "strategies/federated_averaging/server_optimizer.h"

#include <cmath>

#include "core/error.h"
#include "optimizers/momentum.h"

namespace tutti::federated_averaging {
namespace {

//   m = b1 m + (1-b1) g;  x -= lr m / (sqrt(v) + eps)
//   adagrad: v += g^2;  adam: v = b2 v + (1-b2) g^2;  yogi: v -= (1-b2) g^2 sign(v - g^2)
class Adaptive : public Optimizer {
 public:
  Adaptive(const ServerOptimizerConfig& config, size_t size)
      : config_(config),
        mean_(size),
        squares_(size, config.second_moments == SecondMoments::kZero
                            ? 0.0F
                            : static_cast<float>(config.eps * config.eps)) {}

  void step(std::span<float> x, std::span<const float> g, double lr) override {
    TUTTI_CHECK(x.size() == mean_.size() && g.size() == mean_.size());
    const auto b1 = static_cast<float>(config_.beta1), b2 = static_cast<float>(config_.beta2);
    const auto fresh1 = static_cast<float>(1 - config_.beta1);
    const auto fresh2 = static_cast<float>(1 - config_.beta2);
    const auto eps = static_cast<float>(config_.eps), rate = static_cast<float>(lr);
    for (size_t i = 0; i < x.size(); ++i) {
      const float square = g[i] * g[i];
      float& v = squares_[i];
      mean_[i] = b1 * mean_[i] + fresh1 * g[i];
      if (config_.kind == ServerKind::kAdagrad)
        v += square;
      else if (config_.kind == ServerKind::kAdam)
        v = b2 * v + fresh2 * square;
      else
        v -= fresh2 * square * (v > square ? 1.0f : v < square ? -1.0f : 0.0f);
      x[i] -= rate * mean_[i] / (std::sqrt(v) + eps);
    }
    ++steps_;
  }
  std::vector<std::span<float>> state() override { return {mean_, squares_}; }
  int64_t steps() const override { return steps_; }

 private:
  ServerOptimizerConfig config_;
  std::vector<float> mean_, squares_;
  int64_t steps_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> make_server_optimizer(const ServerOptimizerConfig& config,
                                                 const Layout& layout) {
  if (config.adapts())
    return with_running_statistics(std::make_unique<Adaptive>(config, layout.size), layout);
  OptimizerConfig plain(word_of(config.kind));
  if (config.kind == ServerKind::kMomentum)
    plain.rule.get<MomentumRule>().momentum = config.momentum;
  return make_optimizer(plain, layout);
}

}  // namespace tutti::federated_averaging

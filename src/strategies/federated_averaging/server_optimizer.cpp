#include "strategies/federated_averaging/server_optimizer.h"

#include <cmath>

#include "core/error.h"

namespace tutti::federated_averaging {
namespace {

//   m = b1 m + (1-b1) g;  x -= lr m / (sqrt(v) + eps)
//   adagrad: v += g^2;  adam: v = b2 v + (1-b2) g^2;  yogi: v -= (1-b2) g^2 sign(v - g^2)
class Adaptive : public Optimizer {
 public:
  Adaptive(const OptimizerConfig& config, bool from_zero, size_t size)
      : config_(config),
        mean_(size),
        squares_(size, from_zero ? 0.0F : static_cast<float>(config.eps * config.eps)) {}

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
      if (config_.kind == "adagrad")
        v += square;
      else if (config_.kind == "adam")
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
  OptimizerConfig config_;
  std::vector<float> mean_, squares_;
  int64_t steps_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> make_server_optimizer(const OptimizerConfig& config, bool from_zero,
                                                 const Layout& layout) {
  if (config.kind == "sgd" || config.kind == "momentum") return make_optimizer(config, layout);
  return with_running_statistics(std::make_unique<Adaptive>(config, from_zero, layout.size),
                                 layout);
}

}  // namespace tutti::federated_averaging

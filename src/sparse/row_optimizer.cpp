#include "sparse/row_optimizer.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "optimizers/adagrad.h"
#include "optimizers/adam.h"
#include "optimizers/momentum.h"
#include "optimizers/sgd.h"

namespace tutti {
namespace {

void refuse(const char* key, const std::string& why) {
  throw ConfigError(key, fmt::format("rows that are updated only when a batch touches them cannot "
                                     "be trained with {}",
                                     why));
}

}  // namespace

RowOptimizer::RowOptimizer(const OptimizerConfig& config)
    : kind_(Kind::kSgd) {
  if (const auto* momentum = config.rule.find<MomentumRule>()) {
    kind_ = Kind::kMomentum;
    momentum_ = static_cast<float>(momentum->momentum);
  } else if (const auto* adagrad = config.rule.find<AdagradRule>()) {
    kind_ = Kind::kAdagrad;
    eps_ = static_cast<float>(adagrad->eps);
  } else if (const auto* adam = config.rule.find<AdamRule>()) {
    kind_ = Kind::kAdam;
    beta1_ = adam->moments.beta1;
    beta2_ = adam->moments.beta2;
    eps_ = static_cast<float>(adam->moments.eps);
  } else if (!config.rule.find<SgdRule>()) {
    refuse("optimizer.kind",
           fmt::format("optimizer.kind = \"{}\", which needs all parameters at once; use sgd, "
                       "momentum, adagrad or adam",
                       config.kind()));
  }
  if (config.weight_decay > 0)
    refuse("optimizer.weight_decay",
           fmt::format("optimizer.weight_decay = {}, which shrinks all rows at every step; use "
                       "task.model.l2, which shrinks those that are touched",
                       config.weight_decay));
  if (config.clip_norm > 0)
    refuse("optimizer.clip_norm",
           fmt::format("optimizer.clip_norm = {}, as nobody has the whole gradient; leave it out, "
                       "or use adagrad",
                       config.clip_norm));
}

bool RowOptimizer::equals_dense(const OptimizerConfig& config) {
  return config.rule.find<SgdRule>() || config.rule.find<AdagradRule>();
}

size_t RowOptimizer::state_width(size_t width) const {
  switch (kind_) {
    case Kind::kSgd:
      return 0;
    case Kind::kMomentum:
    case Kind::kAdagrad:
      return width;
    case Kind::kAdam:
      return 2 * width + 1;  // the moments, and how often the row was updated
  }
  return 0;
}

// Written as the optimizers on all parameters are, operation by operation: the results are equal.
void RowOptimizer::step(std::span<float> row, std::span<float> state, std::span<const float> g,
                        double lr) const {
  const auto rate = static_cast<float>(lr);
  const size_t width = row.size();
  float* const x = row.data();
  switch (kind_) {
    case Kind::kSgd:
      for (size_t i = 0; i < width; ++i) x[i] -= rate * g[i];
      return;
    case Kind::kMomentum:
      for (size_t i = 0; i < width; ++i) {
        state[i] = momentum_ * state[i] - rate * g[i];
        x[i] += state[i];
      }
      return;
    case Kind::kAdagrad:
      for (size_t i = 0; i < width; ++i) {
        state[i] += g[i] * g[i];
        x[i] -= rate * g[i] / (std::sqrt(state[i]) + eps_);
      }
      return;
    case Kind::kAdam: {
      const std::span<float> m = state.first(width), v = state.subspan(width, width);
      state[2 * width] += 1;
      const auto t = static_cast<double>(state[2 * width]);
      const auto step = static_cast<float>(lr / (1 - std::pow(beta1_, t)));
      const auto unbias = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2_, t)));
      const auto b1 = static_cast<float>(beta1_), b2 = static_cast<float>(beta2_);
      const auto fresh1 = static_cast<float>(1 - beta1_), fresh2 = static_cast<float>(1 - beta2_);
      for (size_t i = 0; i < width; ++i) {
        m[i] = b1 * m[i] + fresh1 * g[i];
        v[i] = b2 * v[i] + fresh2 * (g[i] * g[i]);
        x[i] -= step * m[i] / (std::sqrt(v[i]) * unbias + eps_);
      }
      return;
    }
  }
}

}  // namespace tutti

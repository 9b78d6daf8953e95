#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/random.h"
#include "optimizers/optimizer.h"
#include "tests/core/key_recorder.h"

namespace tutti {
namespace {

OptimizerConfig config_of(std::string_view kind) { return OptimizerConfig(kind); }

std::vector<float> random_values(size_t size, uint32_t sequence) {
  Random random(5, Stream::kTest, sequence);
  std::vector<float> values(size);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

TEST(Optimizers, TheCatalogTellsTheNumberOfStateBuffers) {
  for (const OptimizerEntry& entry : optimizer_catalog()) {
    OptimizerConfig config = config_of(entry.name);
    const auto optimizer = make_optimizer(config, 10);
    if (entry.name == "shampoo") continue;  // has matrices
    EXPECT_EQ(optimizer->state().size(), static_cast<size_t>(entry.slots)) << entry.name;
    for (const auto slot : optimizer->state()) EXPECT_EQ(slot.size(), 10u);
    const double values = optimizer_cost(config, 10).values;
    EXPECT_EQ(values, 10 * (entry.slots + (entry.name == "lamb" ? 1 : 0)));
    config.clip_norm = 1;
    EXPECT_EQ(optimizer_cost(config, 10).values, values + 10);
    EXPECT_EQ(make_optimizer(config, 10)->state().size(), static_cast<size_t>(entry.slots));
  }
}

TEST(Optimizers, AnUnknownKindIsRefusedWithTheNearestOne) {
  try {
    make_optimizer(config_of("nestrov"), 1);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.key(), "optimizer.kind");
    EXPECT_NE(std::string(error.what()).find("'nesterov'"), std::string::npos);
  }
}

TEST(Optimizers, AZeroGradientFromTheStartMovesNothing) {
  for (const OptimizerEntry& entry : optimizer_catalog()) {
    const auto optimizer = make_optimizer(config_of(entry.name), 9);
    std::vector<float> x = random_values(9, 0);
    const std::vector<float> before = x, zero(9);
    for (int step = 0; step < 5; ++step) optimizer->step(x, zero, 0.1);
    EXPECT_EQ(x, before) << entry.name;
  }
}

TEST(Optimizers, AFirstStepGoesAgainstTheGradient) {
  for (const OptimizerEntry& entry : optimizer_catalog()) {
    std::vector<float> x(100);
    const std::vector<float> g = random_values(100, 1);
    make_optimizer(config_of(entry.name), 100)->step(x, g, 0.1);
    for (size_t i = 0; i < x.size(); ++i) EXPECT_LT(x[i] * g[i], 0) << entry.name;
  }
}

// Tensors do not influence one another, nor do elements where the catalog does not say that tensors
// matter, so a buffer may be updated in parts: bitwise the same.
TEST(Optimizers, PartsGiveTheSameAsTheWhole) {
  constexpr size_t kSize = 37, kCut = 13;  // 13 and 4 x 6
  for (const OptimizerEntry& entry : optimizer_catalog()) {
    OptimizerConfig config = config_of(entry.name);
    config.weight_decay = 0.01;
    std::vector<float> whole = random_values(kSize, 0), parts = whole;
    const Layout tensors(kSize, {{{kCut}, {0, kCut}}, {{4, 6}, {kCut, kSize}}});
    const auto all = make_optimizer(config, entry.shaped ? tensors : Layout(kSize));
    const auto left = make_optimizer(config, kCut),
               right = make_optimizer(config, {kSize - kCut, {{{4, 6}, {0, kSize - kCut}}}});
    for (uint32_t step = 0; step < 10; ++step) {
      const std::vector<float> g = random_values(kSize, 1 + step);
      all->step(whole, g, 0.1);
      left->step(std::span(parts).first(kCut), std::span(g).first(kCut), 0.1);
      right->step(std::span(parts).subspan(kCut), std::span(g).subspan(kCut), 0.1);
    }
    EXPECT_EQ(whole, parts) << entry.name;
  }
}

TEST(Optimizers, StateIsAllThatTheNextStepDependsOn) {
  for (const OptimizerEntry& entry : optimizer_catalog()) {
    if (entry.name.starts_with("adam") || entry.name == "lamb")
      continue;  // depends on the number of steps too
    std::vector<float> x = random_values(20, 0);
    const auto first = make_optimizer(config_of(entry.name), 20);
    for (uint32_t step = 0; step < 5; ++step) first->step(x, random_values(20, 1 + step), 0.1);
    const auto second = make_optimizer(config_of(entry.name), 20);
    for (size_t i = 0; i < first->state().size(); ++i)
      std::copy(first->state()[i].begin(), first->state()[i].end(), second->state()[i].begin());
    std::vector<float> y = x;
    first->step(x, random_values(20, 9), 0.1);
    second->step(y, random_values(20, 9), 0.1);
    EXPECT_EQ(x, y) << entry.name;
  }
}

// x_T = x_0 - sum over t of lr_t g_t (1 + mu + ... + mu^(T-t)): each gradient keeps its own rate.
TEST(Optimizers, MomentumHasItsClosedFormUnderAChangingRate) {
  constexpr double kMu = 0.9;
  constexpr int kSteps = 30;
  const auto optimizer = make_optimizer(config_of("momentum"), 1);
  std::vector<float> x = {0.5f};
  double expected = 0.5;
  for (int t = 1; t <= kSteps; ++t) {
    const double rate = 0.1 / t, gradient = std::sin(t);
    const std::vector<float> g = {static_cast<float>(gradient)};
    optimizer->step(x, g, rate);
    expected -= rate * gradient * (1 - std::pow(kMu, kSteps - t + 1)) / (1 - kMu);
  }
  EXPECT_NEAR(x[0], expected, 1e-6);
}

// Nesterov's x is ahead of momentum's by mu v: x_nesterov = x_momentum + mu v at every step.
TEST(Optimizers, NesterovIsMomentumLookedAhead) {
  const auto momentum = make_optimizer(config_of("momentum"), 1);
  const auto nesterov = make_optimizer(config_of("nesterov"), 1);
  std::vector<float> x = {0.5f}, y = {0.5f};
  for (int t = 1; t <= 30; ++t) {
    const std::vector<float> g = {static_cast<float>(std::sin(t))};
    momentum->step(x, g, 0.1 / t);
    nesterov->step(y, g, 0.1 / t);
    EXPECT_NEAR(y[0], x[0] + 0.9f * momentum->state()[0][0], 1e-6);
  }
}

TEST(Optimizers, ClippingScalesLargeGradientsToTheNormAndLeavesOthersAlone) {
  for (const size_t size : {1u, 7u, 8u, 1000u}) {
    OptimizerConfig config = config_of("sgd");
    config.clip_norm = 0.5;
    const auto optimizer = make_optimizer(config, size);
    std::vector<float> g = random_values(size, 3), x(size);
    optimizer->step(x, g, 1);
    double norm = 0, gradient_norm = 0;
    for (const float value : x) norm += double{value} * double{value};
    for (const float value : g) gradient_norm += double{value} * double{value};
    ASSERT_GT(gradient_norm, 0.25);
    EXPECT_NEAR(std::sqrt(norm), 0.5, 1e-6);
    const auto scale = static_cast<float>(0.1 / std::sqrt(gradient_norm));
    for (float& value : g) value *= scale;
    std::fill(x.begin(), x.end(), 0.0f);
    optimizer->step(x, g, 1);
    for (size_t i = 0; i < size; ++i) EXPECT_EQ(x[i], -g[i]);
  }
}

TEST(Optimizers, ClippingDoesNotHideNanAndInfinity) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    OptimizerConfig config = config_of("sgd");
    config.clip_norm = 1;
    std::vector<float> x(16), g(16, 0.1f);
    g[5] = bad;
    make_optimizer(config, 16)->step(x, g, 0.1);
    EXPECT_FALSE(std::isfinite(x[5]));
  }
}

TEST(Optimizers, ClippingComesBeforeWeightDecay) {
  OptimizerConfig config = config_of("sgd");
  config.clip_norm = 1;
  config.weight_decay = 0.5;
  std::vector<float> x = {2};
  make_optimizer(config, 1)->step(x, std::vector<float>{10}, 0.1);
  EXPECT_FLOAT_EQ(x[0], 2 - 0.1f * (1 + 0.5f * 2));
}

TEST(Optimizers, AdamwDecaysParametersAndNotGradients) {
  OptimizerConfig config = config_of("adamw");
  config.weight_decay = 0.5;
  std::vector<float> x = {2};
  const auto optimizer = make_optimizer(config, 1);
  optimizer->step(x, std::vector<float>{0}, 0.1);
  EXPECT_FLOAT_EQ(x[0], 2 * (1 - 0.1f * 0.5f));
  EXPECT_EQ(optimizer->state()[0][0], 0);
}

TEST(Optimizers, AnEmptyBufferIsFine) {
  for (const OptimizerEntry& entry : optimizer_catalog()) {
    OptimizerConfig config = config_of(entry.name);
    config.clip_norm = config.weight_decay = 1;
    make_optimizer(config, 0)->step({}, {}, 0.1);
  }
}

TEST(Optimizers, ASizeThatChangesIsABug) {
  std::vector<float> x(3), g(4);
  for (const OptimizerEntry& entry : optimizer_catalog())
    EXPECT_THROW(make_optimizer(config_of(entry.name), 4)->step(x, g, 0.1), std::logic_error);
}

bool shows(OptimizerConfig config, const std::string& key) {
  KeyRecorder recorder;
  visit(recorder, config);
  return std::count(recorder.keys.begin(), recorder.keys.end(), key) == 1;
}

TEST(Optimizers, OnlyTheKeysInUseAreShown) {
  for (const OptimizerEntry& entry : optimizer_catalog()) {
    const OptimizerConfig config = config_of(entry.name);
    for (const char* key : {"kind", "lr", "weight_decay", "clip_norm", "schedule", "base_batch"})
      EXPECT_TRUE(shows(config, key)) << entry.name << ' ' << key;
    EXPECT_EQ(shows(config, "momentum"), entry.name == "momentum" || entry.name == "nesterov");
    EXPECT_EQ(shows(config, "decay"), entry.name == "rmsprop");
    EXPECT_EQ(shows(config, "beta2"), entry.name.starts_with("adam") || entry.name == "lamb");
    EXPECT_EQ(shows(config, "eps"),
              entry.name.starts_with("ad") || entry.name == "rmsprop" || entry.shaped);
    EXPECT_EQ(shows(config, "root_every"), entry.name == "shampoo");
  }
  OptimizerConfig config;
  EXPECT_FALSE(shows(config, "step_epochs") || shows(config, "final_fraction"));
  config.schedule.kind = ScheduleKind::kCosine;
  EXPECT_TRUE(shows(config, "final_fraction") && !shows(config, "step_factor"));
  for (const ScheduleKind schedule : {ScheduleKind::kStep, ScheduleKind::kGrowBatch}) {
    config.schedule.kind = schedule;
    EXPECT_TRUE(shows(config, "step_epochs") && shows(config, "step_factor"));
  }
}

}  // namespace
}  // namespace tutti

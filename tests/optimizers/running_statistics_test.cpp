// Running statistics follow what they are told, and leave everything else as if they were not
// there.
#include <gtest/gtest.h>

#include "core/random.h"
#include "optimizers/optimizer.h"

namespace tutti {
namespace {

// A matrix, eight statistics and a vector. Eight, because norms add up every eighth value.
const Layout kWith(32, {{{4, 4}, {0, 16}}, {{8}, {16, 24}, 0.25}, {{8}, {24, 32}}});
const Layout kWithout(24, {{{4, 4}, {0, 16}}, {{8}, {16, 24}}});

std::vector<float> trained_part(const std::vector<float>& values) {
  std::vector<float> result(values.begin(), values.begin() + 16);
  result.insert(result.end(), values.begin() + 24, values.end());
  return result;
}

std::vector<float> normal_values(size_t size, uint32_t sequence) {
  Random random(7, Stream::kTest, sequence);
  std::vector<float> values(size);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

TEST(RunningStatistics, FollowAtTheirOwnRateUnderEveryOptimizer) {
  for (const OptimizerEntry& entry : optimizer_catalog()) {
    OptimizerConfig config(entry.name);
    config.weight_decay = 0.1;
    config.clip_norm = 2;  // less than the norm of 24 normal values
    const auto with = make_optimizer(config, kWith), without = make_optimizer(config, kWithout);
    std::vector<float> x = normal_values(32, 0), alone = trained_part(x);
    for (uint32_t step = 1; step <= 5; ++step) {
      const std::vector<float> g = normal_values(32, step), before = x;
      with->step(x, g, 0.05);
      without->step(alone, trained_part(g), 0.05);
      for (size_t i = 16; i < 24; ++i) EXPECT_EQ(x[i], before[i] - 0.25F * g[i]) << entry.name;
    }
    EXPECT_EQ(trained_part(x), alone) << entry.name;
    EXPECT_EQ(with->steps(), without->steps());
  }
}

TEST(RunningStatistics, CostABufferWhereThereAreAny) {
  const OptimizerConfig config;
  EXPECT_EQ(optimizer_cost(config, kWithout).values, 0);
  EXPECT_EQ(optimizer_cost(config, kWith).values, 32);
}

// Whatever was the state before: the next step goes on as if nothing had been in between.
TEST(RunningStatistics, AreNoPartOfTheState) {
  const OptimizerConfig config("adam");
  const auto first = make_optimizer(config, kWith), second = make_optimizer(config, kWith);
  std::vector<float> x = normal_values(32, 0);
  for (uint32_t step = 1; step <= 3; ++step) first->step(x, normal_values(32, step), 0.05);
  const auto from = first->state(), to = second->state();
  ASSERT_EQ(from.size(), to.size());
  for (size_t i = 0; i < from.size(); ++i) std::copy(from[i].begin(), from[i].end(), to[i].begin());
  second->resume(first->steps());
  std::vector<float> y = x;
  first->step(x, normal_values(32, 9), 0.05);
  second->step(y, normal_values(32, 9), 0.05);
  EXPECT_EQ(x, y);
}

}  // namespace
}  // namespace tutti

// Optimizers on rows are the same as on all parameters, wherever that is possible.
#include "sparse/row_optimizer.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/random.h"

namespace tutti {
namespace {

constexpr size_t kRows = 7, kWidth = 3;

OptimizerConfig config_of(const std::string& kind) { return OptimizerConfig(kind); }

// Steps with gradients in some rows only: bitwise what the optimizer does to the whole vector.
void compare(const std::string& kind, bool all_rows) {
  Random random(3, Stream::kTest);
  const OptimizerConfig config = config_of(kind);
  const auto dense = make_optimizer(config, kRows * kWidth);
  const RowOptimizer rows(config);
  const size_t state_width = rows.state_width(kWidth);
  std::vector<float> x(kRows * kWidth, 0.5F), y = x, states(kRows * state_width);
  for (int step = 0; step < 50; ++step) {
    std::vector<float> g(x.size());
    std::vector<bool> touched(kRows);
    for (size_t row = 0; row < kRows; ++row) {
      touched[row] = all_rows || random.below(2);
      for (size_t c = 0; c < kWidth && touched[row]; ++c)
        g[row * kWidth + c] = static_cast<float>(random.normal());
    }
    dense->step(x, g, 0.1);
    for (size_t row = 0; row < kRows; ++row)
      if (touched[row])
        rows.step(std::span(y).subspan(row * kWidth, kWidth),
                  std::span(states).subspan(row * state_width, state_width),
                  std::span<const float>(g).subspan(row * kWidth, kWidth), 0.1);
    ASSERT_EQ(x, y) << kind << ", step " << step;
  }
}

TEST(RowOptimizer, EqualsTheDenseOneWhereRestingRowsRest) {
  for (const char* kind : {"sgd", "adagrad"}) {
    EXPECT_TRUE(RowOptimizer::equals_dense(config_of(kind)));
    compare(kind, false);
  }
}

TEST(RowOptimizer, EqualsTheDenseOneWhenEveryRowIsTouched) {
  for (const char* kind : {"momentum", "adam"}) {
    EXPECT_FALSE(RowOptimizer::equals_dense(config_of(kind)));
    compare(kind, true);
  }
}

TEST(RowOptimizer, RefusesWhatNeedsAllParameters) {
  for (const char* kind : {"nesterov", "rmsprop", "adamw"})
    EXPECT_THROW(RowOptimizer{config_of(kind)}, ConfigError) << kind;
  OptimizerConfig decays = config_of("sgd"), clips = config_of("sgd");
  decays.weight_decay = 0.1;
  clips.clip_norm = 1;
  EXPECT_THROW(RowOptimizer{decays}, ConfigError);
  EXPECT_THROW(RowOptimizer{clips}, ConfigError);
}

}  // namespace
}  // namespace tutti

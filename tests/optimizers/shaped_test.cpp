// Optimizers whose step depends on tensors: closed forms and invariances.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "optimizers/shampoo.h"

namespace tutti {
namespace {

// Shampoo as published: with fresh roots and steps as long as they come out.
OptimizerConfig shaped_config(std::string_view kind) {
  OptimizerConfig config(kind);
  if (!config.rule.find<ShampooRule>()) return config;
  config.rule.get<ShampooRule>().root_every = 1;
  config.rule.get<ShampooRule>().graft = false;
  return config;
}

std::vector<float> random_matrix(size_t size, uint32_t sequence) {
  Random random(6, Stream::kTest, sequence);
  std::vector<float> values(size);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

double norm(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * double{value};
  return std::sqrt(sum);
}

Layout one_tensor(std::vector<int64_t> shape) {
  size_t size = 1;
  for (const int64_t length : shape) size *= static_cast<size_t>(length);
  return {size, {{std::move(shape), {0, size}}}};
}

TEST(Lamb, TheStepOfEachTensorIsAsLongAsTheRateTimesTheTensor) {
  const Layout layout(17, {{{2, 5}, {0, 10}}, {{7}, {10, 17}}});
  OptimizerConfig config = shaped_config("lamb");
  config.weight_decay = 0.1;
  const auto optimizer = make_optimizer(config, layout);
  std::vector<float> x = random_matrix(17, 0);
  for (size_t i = 10; i < 17; ++i) x[i] *= 1000;
  for (uint32_t step = 1; step <= 5; ++step) {
    const std::vector<float> before = x;
    optimizer->step(x, random_matrix(17, step), 0.01);
    std::vector<float> moved(17);
    for (size_t i = 0; i < 17; ++i) moved[i] = x[i] - before[i];
    for (const Tensor& tensor : layout.tensors) {
      const size_t begin = tensor.range.begin, size = tensor.range.size();
      EXPECT_NEAR(norm(std::span(moved).subspan(begin, size)) /
                      norm(std::span(before).subspan(begin, size)),
                  0.01, 1e-5);
    }
  }
}

// The first step of Adam is the sign of the gradient: |u| = sqrt(size), and |x| = 5.
TEST(Lamb, AFirstStepHasItsClosedForm) {
  const auto optimizer = make_optimizer(shaped_config("lamb"), 2);
  std::vector<float> x = {3, -4};
  optimizer->step(x, std::vector<float>{0.25f, 8}, 0.1);
  EXPECT_NEAR(x[0], 3 - 0.1 * 5 / std::sqrt(2), 1e-6);
  EXPECT_NEAR(x[1], -4 - 0.1 * 5 / std::sqrt(2), 1e-6);
}

TEST(Lamb, ATensorOfZerosMovesByThePlainRate) {
  const auto optimizer = make_optimizer(shaped_config("lamb"), 3);
  std::vector<float> x(3);
  optimizer->step(x, std::vector<float>{1, -2, 3}, 0.1);
  EXPECT_NEAR(x[0], -0.1, 1e-6);
  EXPECT_NEAR(x[1], 0.1, 1e-6);
}

// A diagonal gradient has diagonal moments: Shampoo is AdaGrad with eps under the root.
TEST(Shampoo, OnDiagonalGradientsIsAdagrad) {
  OptimizerConfig config = shaped_config("shampoo");
  config.rule.get<ShampooRule>().eps = 0.5;
  const auto optimizer = make_optimizer(config, one_tensor({3, 3}));
  std::vector<float> x(9);
  double expected[3] = {}, sums[3] = {0.5, 0.5, 0.5};
  for (uint32_t step = 0; step < 10; ++step) {
    std::vector<float> g(9);
    const std::vector<float> diagonal = random_matrix(3, step);
    for (size_t i = 0; i < 3; ++i) {
      g[4 * i] = diagonal[i];
      sums[i] += double{diagonal[i]} * double{diagonal[i]};
      expected[i] -= 0.1 * double{diagonal[i]} / std::sqrt(sums[i]);
    }
    optimizer->step(x, g, 0.1);
  }
  for (size_t i = 0; i < 9; ++i) EXPECT_NEAR(x[i], i % 4 == 0 ? expected[i / 4] : 0, 1e-6);
}

// Of a product of vectors every matrix of moments has one direction with |G|^2: whatever the order,
// the first step is G / sqrt(eps + |G|^2).
TEST(Shampoo, AFirstStepAlongAProductOfVectorsHasItsClosedForm) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{5}, {4, 3}, {2, 3, 4}, {2, 3, 1, 2}, {3, 2, 2, 2}, {1}}) {
    const Layout layout = one_tensor(shape);
    std::vector<float> g(layout.size, 1.0f);
    size_t after = layout.size;
    uint32_t sequence = 0;
    for (const int64_t length : shape) {
      const std::vector<float> factor = random_matrix(static_cast<size_t>(length), ++sequence);
      after /= static_cast<size_t>(length);
      for (size_t i = 0; i < g.size(); ++i) g[i] *= factor[i / after % factor.size()];
    }
    OptimizerConfig config = shaped_config("shampoo");
    config.rule.get<ShampooRule>().eps = 0.01;
    std::vector<float> x(layout.size);
    make_optimizer(config, layout)->step(x, g, 1);
    const double length = norm(g);
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(x[i], -double{g[i]} / std::sqrt(0.01 + length * length), 1e-6) << shape.size();
  }
}

// A column 2 x 1 has order 2: G = (3, 4) then (3, -4). The first step is that of a product of
// vectors. After it H_1 = diag(18, 32) and H_2 = 50, so that the second is
// 3 / (18 x 50)^(1/4) and -4 / (32 x 50)^(1/4); a vector of 2 would move by 3 / sqrt(18).
TEST(Shampoo, ADimensionOfOneCountsInTheExponent) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{2, 1}, {1, 2}, {2}}) {
    OptimizerConfig config = shaped_config("shampoo");
    config.rule.get<ShampooRule>().eps = 1e-9;
    config.rule.get<ShampooRule>().root_every = 1;
    const auto optimizer = make_optimizer(config, one_tensor(shape));
    std::vector<float> x(2);
    optimizer->step(x, std::vector<float>{3, 4}, 1);
    EXPECT_NEAR(x[0], -0.6, 1e-6);
    EXPECT_NEAR(x[1], -0.8, 1e-6);
    optimizer->step(x, std::vector<float>{3, -4}, 1);
    const bool vector = shape.size() == 1;
    EXPECT_NEAR(x[0] + 0.6, vector ? -3 / std::sqrt(18) : -3 / std::pow(18.0 * 50, 0.25), 1e-5);
    EXPECT_NEAR(x[1] + 0.8, vector ? 4 / std::sqrt(32) : 4 / std::pow(32.0 * 50, 0.25), 1e-5);
  }
}

// Beyond the largest dimension the diagonal alone is kept: for a vector that is AdaGrad.
TEST(Shampoo, LongDimensionsKeepTheDiagonal) {
  OptimizerConfig config = shaped_config("shampoo");
  config.rule.get<ShampooRule>().largest_dimension = 5;
  const auto optimizer = make_optimizer(config, 6);
  std::vector<float> x(6);
  std::vector<double> expected(6), sums(6, config.rule.get<ShampooRule>().eps);
  for (uint32_t step = 0; step < 10; ++step) {
    const std::vector<float> g = random_matrix(6, step);
    optimizer->step(x, g, 0.1);
    for (size_t i = 0; i < 6; ++i) {
      sums[i] += double{g[i]} * double{g[i]};
      expected[i] -= 0.1 * double{g[i]} / std::sqrt(sums[i]);
    }
  }
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(x[i], expected[i], 1e-6);
  EXPECT_LT(optimizer_cost(config, 6).values, optimizer_cost(shaped_config("shampoo"), 6).values);
}

TEST(Shampoo, RootsAreKeptBetweenTheStepsThatTakeThem) {
  OptimizerConfig config = shaped_config("shampoo");
  config.rule.get<ShampooRule>().root_every = 3;
  const auto optimizer = make_optimizer(config, 1);
  std::vector<float> x(1);
  const double rates[] = {1, 1, 1, 2, 2, 2};  // roots of 1, 1, 1, 4, 4, 4 sums of squares
  for (const double root : rates) {
    const float before = x[0];
    optimizer->step(x, std::vector<float>{1}, 0.1);
    EXPECT_NEAR(x[0] - before, -0.1 / root, 1e-6);
  }
}

// What it says it holds is what it has.
// Gradients in new directions meet roots that know nothing of them: without `graft` the second step
// is thousands of times as long as that of SGD.
TEST(Shampoo, AStepIsAsLongAsThatOfSgdAlsoWithOldRoots) {
  const Layout layout(17, {{{2, 5}, {0, 10}}, {{7}, {10, 17}}});
  const auto optimizer = make_optimizer(OptimizerConfig("shampoo"), layout);
  std::vector<float> x = random_matrix(17, 0);
  for (uint32_t step = 1; step <= 5; ++step) {
    const std::vector<float> before = x, gradient = random_matrix(17, step);
    optimizer->step(x, gradient, 0.01);
    std::vector<float> moved(17);
    for (size_t i = 0; i < 17; ++i) moved[i] = x[i] - before[i];
    double descent = 0;
    for (size_t i = 0; i < 17; ++i) descent -= double{moved[i]} * double{gradient[i]};
    EXPECT_GT(descent, 0) << "the loss falls along it";
    for (const Tensor& tensor : layout.tensors) {
      const size_t begin = tensor.range.begin, size = tensor.range.size();
      const auto part = [&](const std::vector<float>& values) {
        return norm(std::span(values).subspan(begin, size));
      };
      EXPECT_NEAR(part(moved) / part(gradient), 0.01, 1e-6) << "float's rounding of x";
    }
  }
}

TEST(Shampoo, AGradientOfZerosMovesNothing) {
  const auto optimizer = make_optimizer(OptimizerConfig("shampoo"), one_tensor({2, 3}));
  std::vector<float> x(6, 1.0f);
  optimizer->step(x, std::vector<float>(6), 0.1);
  EXPECT_EQ(x, std::vector<float>(6, 1.0f));
}

TEST(Shampoo, StateIsWhatTheCostSays) {
  const Layout layout(74, {{{6, 5, 2}, {0, 60}}, {{14}, {60, 74}}});
  size_t values = 0;
  const auto optimizer = make_optimizer(shaped_config("shampoo"), layout);
  for (const auto part : optimizer->state()) values += part.size();
  EXPECT_EQ(values, 4u * (36 + 25 + 4 + 196) + 1);
  EXPECT_EQ(optimizer_cost(shaped_config("shampoo"), layout).values,
            static_cast<double>(values - 1 + 4 * 60));
}

// A quadratic whose curvatures differ a hundred times, from row to row of the matrix and from value
// to value of the vector: what a preconditioner of each dimension can see.
TEST(ShapedOptimizers, ComeToTheMinimumOfAQuadratic) {
  for (const char* kind : {"lamb", "shampoo"}) {
    const Layout layout(24, {{{4, 3}, {0, 12}}, {{12}, {12, 24}}});
    const auto optimizer = make_optimizer(shaped_config(kind), layout);
    const std::vector<float> minimum = random_matrix(24, 50);
    std::vector<float> x = random_matrix(24, 51), g(24);
    constexpr int kSteps = 3000;
    for (int step = 0; step < kSteps; ++step) {
      for (size_t i = 0; i < 24; ++i) {
        const size_t row = i < 12 ? i / 3 : i;
        g[i] = (row % 2 == 0 ? 10.0f : 0.1f) * (x[i] - minimum[i]);
      }
      const double left = 1 - static_cast<double>(step) / kSteps;
      optimizer->step(x, g, (std::string_view(kind) == "lamb" ? 0.02 : 1) * left);
    }
    for (size_t i = 0; i < 24; ++i) EXPECT_NEAR(x[i], minimum[i], 0.01) << kind << " " << i;
  }
}

}  // namespace
}  // namespace tutti

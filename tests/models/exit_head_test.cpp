// The exit of a model: its scores and gradients against plain double arithmetic.
#include "models/exit_head.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"
#include "models/losses.h"

namespace tutti {
namespace {

constexpr size_t kValues = 7, kClasses = 3, kSamples = 4;

std::vector<float> activations() {
  Random random(1, Stream::kTest);
  std::vector<float> x(kSamples * kValues);
  for (float& value : x) value = static_cast<float>(std::max(0.0, random.normal()));
  return x;
}

// A sum of at most kValues + 1 products of numbers of size 2: within ten roundings.
TEST(ExitHead, ScoresAreAffine) {
  ExitHead head(kValues, kClasses, 5, 10, Arithmetic());
  const std::vector<float> x = activations();
  const auto scores = head.forward(x);
  ASSERT_EQ(scores.size(), kSamples * kClasses);
  const auto w = head.parameters();
  for (size_t i = 0; i < kSamples; ++i)
    for (size_t c = 0; c < kClasses; ++c) {
      double expected = double{w[kValues * kClasses + c]};
      for (size_t k = 0; k < kValues; ++k)
        expected += double{x[i * kValues + k]} * double{w[k * kClasses + c]};
      EXPECT_NEAR(scores[i * kClasses + c], expected, 10 * std::ldexp(2.0, -23));
    }
}

// Central differences of the loss in double arithmetic: their own error is h^2 times a third
// derivative of the order of 1, and roundings of the float scores over h.
TEST(ExitHead, GradientsAreThoseOfTheLoss) {
  ExitHead head(kValues, kClasses, 5, 10, Arithmetic());
  std::vector<float> x = activations();
  const std::vector<int32_t> labels = {0, 2, 1, 2};
  std::vector<float> score_slopes(kSamples * kClasses), slope(x.size());
  const auto loss = [&] { return cross_entropy(head.forward(x), labels, 1, {}); };
  cross_entropy(head.forward(x), labels, 1, score_slopes);
  head.backward(x, score_slopes, slope);
  const double h = 1.0 / 64, bound = 2e-3;
  const auto difference = [&](float& value) {
    const float before = value;
    value = before + static_cast<float>(h);
    const double above = loss();
    value = before - static_cast<float>(h);
    const double below = loss();
    value = before;
    return (above - below) / (2 * h);
  };
  for (size_t i = 0; i < head.parameter_count(); ++i)
    EXPECT_NEAR(difference(head.parameters()[i]), head.gradients()[i], bound) << "parameter " << i;
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(difference(x[i]), slope[i], bound) << "activation " << i;
}

TEST(ExitHead, StartsLikeALinearLayerAndDependsOnTheSeed) {
  ExitHead a(100, 10, 1, 4, Arithmetic()), b(100, 10, 2, 4, Arithmetic()),
      c(100, 10, 1, 6, Arithmetic());
  double largest = 0;
  for (const float value : a.parameters()) largest = std::max(largest, std::abs(double{value}));
  EXPECT_LE(largest, 0.1);
  EXPECT_GT(largest, 0.09);
  EXPECT_FALSE(std::equal(a.parameters().begin(), a.parameters().end(), b.parameters().begin()));
  EXPECT_FALSE(std::equal(a.parameters().begin(), a.parameters().end(), c.parameters().begin()));
}

}  // namespace
}  // namespace tutti

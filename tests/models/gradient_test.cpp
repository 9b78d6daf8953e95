// Gradients of every model against finite differences, and scores against a naive reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/models/example.h"
#include "tests/models/model_of.h"
#include "tests/models/reference.h"

namespace tutti {
namespace {

std::vector<ModelCase> model_cases() {
  return {
      ModelCase{"linear", model_of("linear"), {6}, 0},
      ModelCase{"linear_l1", model_of("linear", {{"l2", 0.1}, {"l1", 0.3}}), {12}, 0},
      ModelCase{"linear_image_l2", model_of("linear", {{"l2", 0.1}}), {2, 3, 2}, 0},
      ModelCase{"logistic", model_of("logistic"), {9}, 4},
      ModelCase{"logistic_l2", model_of("logistic", {{"l2", 0.3}}), {1, 3, 3}, 3},
      ModelCase{"mlp", model_of("mlp", {{"hidden", {7}}}), {5}, 3},
      ModelCase{"mlp_regression", model_of("mlp", {{"hidden", {8}}}), {5}, 0},
      ModelCase{"mlp_deep", model_of("mlp", {{"hidden", {9, 6}}, {"dropout", 0.3}}), {2, 4}, 3},
      ModelCase{"lenet",
                model_of("lenet", {{"channels", {3, 4}}, {"hidden", {6}}, {"dropout", 0.4}}),
                {1, 20, 20},
                3},
      ModelCase{"lenet_colour_odd",
                model_of("lenet", {{"channels", {2, 3}}, {"hidden", {7, 5}}, {"dropout", 0.25}}),
                {3, 21, 18},
                4},
      ModelCase{"lenet_wide",
                model_of("lenet", {{"channels", {9, 17}}, {"hidden", {6}}, {"dropout", 0}}),
                {1, 16, 16},
                2},
      ModelCase{"lenet_classic",
                model_of("lenet", {{"channels", {6, 16}}, {"hidden", {12, 8}}, {"dropout", 0}}),
                {1, 20, 20},
                3},
      ModelCase{"resnet20",
                model_of("resnet20", {{"channels", {4, 8, 12}}, {"blocks", 2}, {"groups", 2}}),
                {3, 8, 8},
                3},
      ModelCase{"resnet20_odd",
                model_of("resnet20", {{"channels", {6, 9}}, {"blocks", 1}, {"groups", 3}}),
                {1, 7, 5},
                4},
      ModelCase{"resnet20_batch_norm",
                model_of("resnet20", {{"channels", {4, 6}}, {"blocks", 1}, {"norm", "batch"}}),
                {2, 6, 6},
                3},
      // With a rest: the batches below have five, three and four samples.
      ModelCase{
          "resnet20_ghost_batches",
          model_of("resnet20",
                   {{"channels", {3, 5}}, {"blocks", 1}, {"norm", "batch"}, {"ghost_batch", 3}}),
          {1, 7, 5},
          4},
      ModelCase{"transformer",
                model_of("transformer", {{"width", 8}, {"depth", 2}, {"heads", 2}}),
                {7},
                5},
      ModelCase{
          "transformer_dropout",
          model_of("transformer", {{"dropout", 0.3}, {"width", 6}, {"depth", 1}, {"heads", 3}}),
          {4},
          9}};
}

class EveryModel : public testing::TestWithParam<ModelCase> {};

// The model rounds to float: a sum of k products is off by about sqrt(k) * 6e-8 of its size, and
// k is at most 1,000 here. 2e-5 of the largest value is ten times that.
constexpr double kTolerance = 2e-5;

std::vector<double> widen(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

double largest(const std::vector<double>& values) {
  double result = 1;
  for (double value : values) result = std::max(result, std::abs(value));
  return result;
}

// Away from the start, where the factors of norms are all one and some biases zero: there a
// forgotten factor would not show.
Example moved(const ModelCase& c) {
  Example example(c.config, c.shape, c.classes);
  Random random(5, Stream::kTest);
  for (float& value : example.parameters) value += static_cast<float>(0.1 * random.normal());
  return example;
}

TEST_P(EveryModel, ScoresMatchTheReference) {
  Example example = moved(GetParam());
  const Batch batch = example.batch(0, 5);
  const Reference reference(example.architecture, 1);
  const std::vector<double> expected = reference.scores(widen(example.parameters), batch, false);
  const std::vector<float> scores = scores_of(*example.model, batch);
  ASSERT_EQ(scores.size(), expected.size());
  for (size_t i = 0; i < scores.size(); ++i)
    EXPECT_NEAR(scores[i], expected[i], kTolerance * largest(expected));
}

// Parameters may come while the forward pass goes on: those of later layers are not read before it
// has asked for them.
TEST_P(EveryModel, ReadsParametersWhenItHasAskedForThem) {
  Example example = moved(GetParam());
  const Batch batch = example.batch(0, 3);
  const std::vector<float> expected = example.gradient(batch);
  const std::vector<float> all = example.parameters;
  std::fill(example.parameters.begin(), example.parameters.end(), NAN);
  std::vector<Range> asked;
  example.model->before_reading([&](Range range) {
    asked.push_back(range);
    std::copy(all.begin() + static_cast<std::ptrdiff_t>(range.begin),
              all.begin() + static_cast<std::ptrdiff_t>(range.end),
              example.parameters.begin() + static_cast<std::ptrdiff_t>(range.begin));
  });
  EXPECT_EQ(example.gradient(batch), expected);
  std::vector<Range> ready = ready_ranges(example.architecture);
  std::reverse(ready.begin(), ready.end());
  ASSERT_EQ(asked.size(), ready.size());
  for (size_t i = 0; i < asked.size(); ++i) {
    EXPECT_EQ(asked[i].begin, ready[i].begin);
    EXPECT_EQ(asked[i].end, ready[i].end);
  }
  example.model->before_reading(nullptr);
  EXPECT_EQ(example.gradient(batch), expected);
}

TEST_P(EveryModel, GradientMatchesFiniteDifferences) {
  Example example = moved(GetParam());
  const Batch batch = example.batch(7, 4, 3);
  const Reference reference(example.architecture, 1);
  const float scale = 0.5F;
  std::vector<double> at = widen(example.parameters);
  const double loss = reference.training_loss(at, batch);
  EXPECT_NEAR(example.model->gradient(batch, scale, {}), loss, kTolerance * std::max(1.0, loss));
  // Central differences: an error of h^2 and of 1e-16 / h. The step is small enough not to move a
  // maximum or a relu to the other side, where there is no derivative.
  const double h = 1e-6;
  const size_t stride = 1 + at.size() / 1000;  // of large models, about a thousand coordinates
  std::vector<double> expected;
  for (size_t i = 0; i < at.size(); i += stride) {
    const double centre = at[i];
    at[i] = centre + h;
    const double above = reference.training_loss(at, batch);
    at[i] = centre - h;
    const double below = reference.training_loss(at, batch);
    at[i] = centre;
    expected.push_back(static_cast<double>(scale) * (above - below) / (2 * h));
  }
  // Running statistics have no derivative; how far they are off stands there.
  const std::vector<double> off = reference.statistics_off(at, batch);
  for (const Range range : example.architecture.statistics())
    for (size_t i = range.begin; i < range.end; ++i)
      if (i % stride == 0) expected[i / stride] = static_cast<double>(scale) * off[i];
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(example.gradients[i * stride], expected[i], kTolerance * largest(expected)) << i;
  EXPECT_GT(std::count_if(expected.begin(), expected.end(), [](double g) { return g != 0; }),
            static_cast<ptrdiff_t>(expected.size() / 3));
}

INSTANTIATE_TEST_SUITE_P(Models, EveryModel, testing::ValuesIn(model_cases()),
                         [](const testing::TestParamInfo<ModelCase>& c) { return c.param.name; });

// Models on rows that stay sparse take other batches: sparse_model_test.cpp has theirs.
TEST(ModelCases, HaveEveryDenseModelOfTheCatalog) {
  for (const ModelEntry& entry : model_catalog()) {
    const std::vector<ModelCase> cases = model_cases();
    const bool listed = std::any_of(cases.begin(), cases.end(), [&](const ModelCase& c) {
      return c.config.kind() == entry.name;
    });
    EXPECT_NE(listed, entry.sparse) << entry.name;
  }
}

}  // namespace
}  // namespace tutti

// What is special about models that predict at every position of a sequence, and what Model
// promises for the deep ones.
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "models/losses.h"
#include "tests/models/example.h"
#include "tests/models/model_of.h"

namespace tutti {
namespace {

const ModelConfig kTransformer =
    model_of("transformer", {{"dropout", 0.2}, {"width", 8}, {"depth", 2}, {"heads", 2}});
const ModelConfig kResnet =
    model_of("resnet20", {{"channels", {4, 8}}, {"blocks", 2}, {"groups", 2}});

Example transformer(uint64_t seed = 1) { return Example(kTransformer, {6}, 5, seed); }
Example resnet(uint64_t seed = 1) { return Example(kResnet, {3, 8, 8}, 4, seed); }

TEST(SequenceModel, NoPositionSeesALaterOne) {
  Example example = transformer();
  Batch batch = example.batch(0, 1);
  const auto before = scores_of(*example.model, batch);
  batch.features[4] = batch.features[4] == 0 ? 1 : 0;
  const auto after = scores_of(*example.model, batch);
  for (size_t i = 0; i < 4 * 5; ++i) EXPECT_EQ(before[i], after[i]) << i;
  for (size_t position = 4; position < 6; ++position)
    EXPECT_NE(before[position * 5], after[position * 5]) << position;
}

// A sample counts as one: means over its positions.
TEST(SequenceModel, EvaluatesByTheMeanOverPositions) {
  Example example = transformer();
  const Batch batch = example.batch(0, 70);  // more than one slice
  const auto scores = scores_of(*example.model, batch);
  const Evaluation result = example.model->evaluate(batch);
  EXPECT_EQ(result.count, 70U);
  EXPECT_NEAR(result.loss, cross_entropy(scores, batch.labels, 1, {}) / 6, 1e-4);
  EXPECT_NEAR(result.correct, static_cast<double>(count_correct(scores, batch.labels)) / 6, 1e-9);
  EXPECT_GT(result.correct, 0);
}

TEST(SequenceModel, RefusesCodesAndLabelsThatDoNotFit) {
  Example example = transformer();
  for (const float code : {5.0F, -1.0F, std::nanf("")}) {
    Batch batch = example.batch(0, 2);
    batch.features[3] = code;
    EXPECT_THROW(example.model->gradient(batch, 1, {}), DataError);
  }
  Batch batch = example.batch(0, 2);
  batch.labels[3] = 5;
  EXPECT_THROW(example.model->gradient(batch, 1, {}), DataError);
  batch.labels.resize(2);  // one per sample
  EXPECT_THROW(example.model->gradient(batch, 1, {}), std::logic_error);
}

class DeepModel : public testing::TestWithParam<Example (*)(uint64_t)> {};

TEST_P(DeepModel, GradientsOfSharesAddUp) {
  Example example = GetParam()(1);
  const auto whole = example.gradient(example.batch(0, 5));
  auto sum = example.gradient(example.batch(3, 2));
  for (uint32_t sample = 0; sample < 3; ++sample) {
    const auto one = example.gradient(example.batch(sample, 1));
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
  }
  // Sums of at most 1,000 products of size 1 in another order.
  for (size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(whole[i], sum[i], 2e-5F) << i;
}

TEST_P(DeepModel, ReportsEachRangeOnceWhenItIsFinal) {
  Example example = GetParam()(1);
  const Batch batch = example.batch(0, 4);
  const std::vector<float> expected = example.gradient(batch);
  example.gradients.assign(example.gradients.size(), 5.0F);
  std::vector<Range> ranges;
  example.model->gradient(batch, 1, [&](Range range) {
    ranges.push_back(range);
    for (size_t i = range.begin; i < range.end; ++i) EXPECT_EQ(example.gradients[i], expected[i]);
    for (size_t i = 0; i < range.begin; ++i) EXPECT_EQ(example.gradients[i], 5.0F);
  });
  EXPECT_EQ(ranges, ready_ranges(example.architecture));
}

TEST_P(DeepModel, IsBitwiseStableWhateverCameBefore) {
  Example a = GetParam()(1), b = GetParam()(1), c = GetParam()(2);
  const Batch batch = a.batch(0, 6), large = a.batch(3, 20);
  const auto alone = a.gradient(batch);
  b.gradient(large);
  b.model->evaluate(large);
  EXPECT_EQ(b.gradient(batch), alone);
  EXPECT_NE(c.gradient(batch), alone);
}

TEST_P(DeepModel, NotANumberShowsInTheLoss) {
  const size_t parameters = GetParam()(1).architecture.parameters.size();
  for (size_t parameter = 0; parameter < parameters; ++parameter) {
    Example example = GetParam()(1);
    const Parameter& changed = example.architecture.parameters[parameter];
    for (size_t i = changed.range.begin; i < changed.range.end; ++i)
      example.parameters[i] = std::nanf("");
    EXPECT_TRUE(std::isnan(example.model->evaluate(example.batch(0, 2)).loss)) << changed.name;
  }
}

TEST_P(DeepModel, EmptyBatchGivesZeros) {
  Example example = GetParam()(1);
  example.gradients.assign(example.gradients.size(), 5.0F);
  EXPECT_EQ(example.model->gradient({}, 1, {}), 0);
  EXPECT_EQ(example.gradients, std::vector<float>(example.gradients.size(), 0));
}

INSTANTIATE_TEST_SUITE_P(Models, DeepModel, testing::Values(&transformer, &resnet),
                         [](const auto& c) { return c.index == 0 ? "transformer" : "resnet"; });

}  // namespace
}  // namespace tutti

// Sparse models: their gradients by finite differences, and that they touch nothing else.
#include "models/sparse_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/random.h"

namespace tutti {
namespace {

constexpr int64_t kFeatures = 40;

// Samples of up to four features, in columns that ascend.
Batch random_batch(uint32_t seed, size_t size, bool classes) {
  Random random(seed, Stream::kTest);
  Batch batch;
  for (uint32_t i = 0; i < size; ++i) {
    batch.samples.push_back(i);
    std::vector<uint32_t> columns;
    for (int j = 0; j < 4; ++j) columns.push_back(static_cast<uint32_t>(random.below(kFeatures)));
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    for (const uint32_t column : columns) {
      batch.rows.columns.push_back(column);
      batch.rows.values.push_back(static_cast<float>(random.normal()));
    }
    batch.rows.begins.push_back(batch.rows.columns.size());
    if (classes)
      batch.labels.push_back(static_cast<int32_t>(random.below(3)));
    else
      batch.targets.push_back(static_cast<float>(random.normal()));
  }
  return batch;
}

struct Example {
  Architecture architecture;
  std::vector<float> parameters, gradients;
  std::unique_ptr<Model> model;
  explicit Example(const std::string& kind, double l2 = 0) {
    ModelConfig config = model_of(kind, {{"l2", l2}});
    try_set(config, "rank", 3);
    architecture = make_architecture(config, {kFeatures}, kind == "sparse_logistic" ? 3 : 0);
    parameters.resize(architecture.parameter_count);
    gradients.resize(architecture.parameter_count, NAN);
    Random random(5, Stream::kTest);
    for (float& value : parameters) value = static_cast<float>(0.5 * random.normal());
    model = kSparseModels.whole(architecture, {parameters, gradients}, {});
  }
  SparseModel& sparse() { return dynamic_cast<SparseModel&>(*model); }
};

class EachSparseModel : public testing::TestWithParam<const char*> {
 protected:
  bool classes() const { return std::string(GetParam()) == "sparse_logistic"; }
};

TEST_P(EachSparseModel, HasTheGradientOfItsLoss) {
  for (const double l2 : {0.0, 0.3}) {
    Example example(GetParam(), l2);
    const Batch batch = random_batch(1, 6, classes());
    const float scale = 0.25F;
    example.model->gradient(batch, scale, [](Range) {});
    const std::vector<float> gradient = example.gradients;
    for (size_t i = 0; i < example.parameters.size(); ++i) {
      // Losses here are below 64 and computed in floats, a part in 2^24 each: over 2^-7 that makes
      // an error of 5e-4 at most, times the scale; the third derivative adds less.
      const float step = 1.0F / 256, at = example.parameters[i];
      example.parameters[i] = at + step;
      const double above = example.model->gradient(batch, scale, nullptr);
      example.parameters[i] = at - step;
      const double below = example.model->gradient(batch, scale, nullptr);
      example.parameters[i] = at;
      ASSERT_NEAR(double{gradient[i]}, double{scale} * (above - below) * 128, 2e-3) << i;
    }
  }
}

TEST_P(EachSparseModel, TouchesOnlyTheRowsOfTheBatch) {
  Example example(GetParam(), 0.1);
  const Batch batch = random_batch(2, 5, classes());
  const double loss = example.model->gradient(batch, 1, nullptr);
  const std::vector<float> dense = example.gradients;
  std::vector<uint64_t> keys;
  touched_rows(example.architecture, batch, keys);
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
  EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
  EXPECT_EQ(keys.back(), uint64_t{kFeatures});  // the bias
  std::fill(example.gradients.begin(), example.gradients.end(), 7.0F);
  std::vector<float> kept = example.parameters;
  // What it may not read is not a number.
  const size_t width = example.architecture.row_width;
  std::vector<bool> touched(example.architecture.rows());
  for (const uint64_t key : keys) touched[key] = true;
  for (size_t i = 0; i < example.parameters.size(); ++i)
    if (!touched[i / width]) example.parameters[i] = NAN;
  EXPECT_EQ(example.sparse().sparse_gradient(batch, keys, 1), loss);
  for (size_t i = 0; i < dense.size(); ++i) {
    if (touched[i / width]) {
      EXPECT_EQ(example.gradients[i], dense[i]);
    } else {
      EXPECT_EQ(example.gradients[i], 7.0F);
      EXPECT_EQ(dense[i], 0.0F);
    }
  }
}

// Over memory of its own for these rows, and nothing else.
TEST_P(EachSparseModel, ComputesTheSameOnRowsThatItHolds) {
  Example example(GetParam(), 0.1);
  const Batch batch = random_batch(2, 5, classes());
  const double loss = example.model->gradient(batch, 1, nullptr);
  const auto outputs = static_cast<size_t>(example.architecture.outputs);
  std::vector<float> scores(batch.size() * outputs), held_scores(scores.size());
  example.model->predict(batch, scores);
  std::vector<uint64_t> keys;
  touched_rows(example.architecture, batch, keys);
  const auto holding = kSparseModels.whole(example.architecture, {}, {});
  auto& sparse = dynamic_cast<SparseModel&>(*holding);
  EXPECT_TRUE(sparse.held().empty());
  sparse.hold(keys);
  const size_t width = example.architecture.row_width;
  ASSERT_EQ(holding->parameters().size(), keys.size() * width);
  for (size_t i = 0; i < keys.size(); ++i)
    std::copy_n(example.parameters.data() + keys[i] * width, width,
                holding->parameters().data() + i * width);
  EXPECT_EQ(sparse.sparse_gradient(batch, keys, 1), loss);
  for (size_t i = 0; i < keys.size() * width; ++i)
    EXPECT_EQ(holding->gradients()[i], example.gradients[keys[i / width] * width + i % width]) << i;
  holding->predict(batch, held_scores);
  EXPECT_EQ(held_scores, scores);
  EXPECT_EQ(holding->evaluate(batch).loss, example.model->evaluate(batch).loss);
}

TEST_P(EachSparseModel, AddsUpOverSharesOfABatch) {
  Example example(GetParam());
  const Batch none = random_batch(1, 0, classes());
  EXPECT_EQ(example.model->gradient(none, 1, nullptr), 0);
  for (const float value : example.gradients) EXPECT_EQ(value, 0.0F);
}

TEST_P(EachSparseModel, StartsByKeyAlone) {
  Example example(GetParam());
  const size_t width = example.architecture.row_width;
  std::vector<float> all(example.architecture.parameter_count), row(width);
  initialise(example.architecture, 9, all);
  for (uint64_t key = example.architecture.rows(); key-- > 0;) {
    initial_row(example.architecture, 9, key, row);
    for (size_t c = 0; c < width; ++c) EXPECT_EQ(row[c], all[key * width + c]);
  }
  std::vector<float> other(all.size());
  initialise(example.architecture, 10, other);
  EXPECT_EQ(other == all, classes());  // only factors are random
}

INSTANTIATE_TEST_SUITE_P(Models, EachSparseModel,
                         testing::Values("sparse_logistic", "factorization"),
                         [](const auto& test) { return std::string(test.param); });

// Of a user and an item it is b + b_u + b_i + p_u.q_i.
TEST(Factorization, IsMatrixFactorisationOfRatings) {
  Example example("factorization");
  Batch batch;
  batch.samples = {0};
  batch.targets = {0};
  batch.rows.begins = {0, 2};
  batch.rows.columns = {4, 21};
  batch.rows.values = {1, 1};
  const auto row = [&](size_t key) { return example.parameters.data() + key * 4; };
  double expected = double{row(4)[0]} + double{row(21)[0]} + double{row(kFeatures)[0]};
  for (size_t f = 1; f < 4; ++f) expected += double{row(4)[f]} * double{row(21)[f]};
  std::vector<float> score(1);
  example.model->predict(batch, score);
  EXPECT_NEAR(double{score[0]}, expected, 1e-6);
  EXPECT_NEAR(example.model->evaluate(batch).loss, expected * expected / 2, 1e-5);
}

TEST(SparseModels, RefuseWhatTheyCannotPredict) {
  ModelConfig config("sparse_logistic");
  EXPECT_THROW(make_architecture(config, {5}, 0), ConfigError);
  EXPECT_THROW(make_architecture(config, {1, 5, 5}, 2), ConfigError);
  config = ModelConfig("factorization");
  EXPECT_THROW(make_architecture(config, {5}, 2), ConfigError);
}

}  // namespace
}  // namespace tutti

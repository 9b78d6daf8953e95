// Stages, composed, are the model: bit by bit, at every cut, with several batches under way.
#include "models/stage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/models/example.h"
#include "tests/models/model_of.h"
#include "tests/models/reference.h"

namespace tutti {
namespace {

const ModelCase kStageCases[] = {
    {"logistic_l2", model_of("logistic", {{"l2", 0.3}}), {1, 3, 3}, 3},
    {"linear", model_of("linear"), {6}, 0},
    {"mlp", model_of("mlp", {{"hidden", {9, 6, 8}}, {"dropout", 0.3}}), {5}, 3},
    {"mlp_regression", model_of("mlp", {{"hidden", {8, 4}}}), {5}, 0},
    {"lenet",
     model_of("lenet", {{"channels", {6, 16}}, {"hidden", {12, 8}}, {"dropout", 0.4}}),
     {1, 20, 20},
     3},
    {"lenet_odd",
     model_of("lenet", {{"channels", {2, 3}}, {"hidden", {7}}, {"dropout", 0.25}}),
     {3, 21, 18},
     4},
    {"resnet20",
     model_of("resnet20", {{"channels", {4, 8, 12}}, {"blocks", 2}, {"groups", 2}}),
     {3, 8, 8},
     3},
    {"resnet20_odd",
     model_of("resnet20", {{"channels", {6, 9}}, {"blocks", 1}, {"groups", 3}}),
     {1, 7, 5},
     4},
    {"resnet20_batch_norm",
     model_of("resnet20",
              {{"channels", {4, 8}}, {"blocks", 2}, {"norm", "batch"}, {"ghost_batch", 3}}),
     {3, 8, 8},
     5},
    {"transformer",
     model_of("transformer", {{"dropout", 0.3}, {"width", 12}, {"depth", 2}, {"heads", 3}}),
     {6},
     9},
};

// A model cut at some places, with memory of its own for what passes the cuts.
struct CutModel {
  CutModel(Example& example, const std::vector<size_t>& cuts) {
    for (const Range layers : stages_between(example.architecture, cuts))
      stages.push_back(example.model->stage(layers));
  }

  // Copies what passes a cut, as a network would.
  void forward(size_t slot, const Batch& batch, std::optional<float> scale = 1) {
    if (inputs.size() <= slot) inputs.resize(slot + 1);
    inputs[slot].resize(stages.size());
    for (size_t s = 0; s < stages.size(); ++s) {
      const auto output = stages[s]->forward(slot, batch, inputs[slot][s], scale);
      if (s + 1 < stages.size()) inputs[slot][s + 1].assign(output.begin(), output.end());
    }
  }
  double loss(size_t slot, const Batch& batch, float scale) {
    return stages.back()->loss(slot, batch, scale);
  }
  void backward(size_t slot) {
    std::vector<float> slope;
    for (size_t s = stages.size(); s-- > 0;) {
      const auto below = stages[s]->backward(slot, slope);
      slope.assign(below.begin(), below.end());
    }
  }

  std::vector<std::unique_ptr<StageModel>> stages;
  std::vector<std::vector<std::vector<float>>> inputs;  // by slot and stage
};

// Every single cut, and all at once.
std::vector<std::vector<size_t>> ways_to_cut(const Architecture& architecture) {
  std::vector<std::vector<size_t>> ways = {{}, architecture.cuts()};
  for (const size_t cut : architecture.cuts()) ways.push_back({cut});
  return ways;
}

class EveryStage : public testing::TestWithParam<ModelCase> {
 protected:
  static Example example() {
    return Example(GetParam().config, GetParam().shape, GetParam().classes);
  }
};

TEST_P(EveryStage, ComposesToTheModelBitByBit) {
  Example example = EveryStage::example();
  const Batch batch = example.batch(3, 5, 4);
  const double loss = example.model->gradient(batch, 0.5F, {});
  const std::vector<float> expected = example.gradients;
  for (const auto& cuts : ways_to_cut(example.architecture)) {
    CutModel cut(example, cuts);
    std::fill(example.gradients.begin(), example.gradients.end(),
              std::numeric_limits<float>::quiet_NaN());
    cut.forward(0, batch, 0.5F);
    EXPECT_EQ(cut.loss(0, batch, 0.5F), loss);
    cut.backward(0);
    EXPECT_EQ(example.gradients, expected) << cuts.size() << " cuts";
  }
}

TEST_P(EveryStage, KeepsBatchesApartThatAreUnderWayAtOnce) {
  Example example = EveryStage::example();
  const Batch batches[] = {example.batch(0, 4, 1), example.batch(9, 7, 1), example.batch(20, 2, 2)};
  std::vector<std::vector<float>> expected;
  std::vector<double> losses;
  for (const Batch& batch : batches) {
    losses.push_back(example.model->gradient(batch, 1, {}));
    expected.push_back(example.gradients);
  }
  CutModel cut(example, example.architecture.cuts());
  for (size_t i = 0; i < 3; ++i) cut.forward(i, batches[i]);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(cut.loss(i, batches[i], 1), losses[i]);
    cut.backward(i);
    EXPECT_EQ(example.gradients, expected[i]) << i;
  }
}

TEST_P(EveryStage, MeasuresWhatTheModelMeasures) {
  Example example = EveryStage::example();
  const Batch batch = example.batch(0, 30);
  const Evaluation expected = example.model->evaluate(batch);
  CutModel cut(example, example.architecture.cuts());
  cut.forward(0, batch, std::nullopt);
  const Evaluation actual = cut.stages.back()->evaluate(0, batch);
  EXPECT_EQ(actual.loss, expected.loss);
  EXPECT_EQ(actual.correct, expected.correct);
  EXPECT_EQ(actual.count, 30U);
}

// The gradient by an activation is right in itself: against finite differences of the reference,
// which shifts the bias that is added to that very activation.
TEST(StageSlopes, MatchFiniteDifferencesOfWhatPassesTheCut) {
  Example example(model_of("mlp", {{"hidden", {6, 7}}}), {5}, 3);
  const Batch batch = example.batch(0, 1);
  const std::vector<size_t> cuts = example.architecture.cuts();
  CutModel cut(example, {cuts[1]});
  cut.forward(0, batch);
  cut.loss(0, batch, 1);
  const auto slope = cut.stages[1]->backward(0, {});
  ASSERT_EQ(slope.size(), 7U);
  const std::vector<float> analytic(slope.begin(), slope.end());
  std::vector<float> input = cut.inputs[0][1];
  // Float arithmetic: a difference of h leaves errors of h^2 and of 1e-7 / h.
  const float h = 1e-2F;
  for (size_t i = 0; i < input.size(); ++i) {
    const float centre = input[i];
    const auto loss_at = [&](float value) {
      input[i] = value;
      cut.stages[1]->forward(1, batch, input, 1);
      return cut.stages[1]->loss(1, batch, 1);
    };
    const double above = loss_at(centre + h), below = loss_at(centre - h);
    input[i] = centre;
    EXPECT_NEAR(analytic[i], (above - below) / (2 * double{h}), 2e-4) << i;
  }
}

// Whoever recomputes a forward pass gets the same: nothing that a stage was given is overwritten.
TEST_P(EveryStage, CanRepeatAForwardPass) {
  Example example = EveryStage::example();
  const Batch batch = example.batch(3, 5, 4);
  example.model->gradient(batch, 1, {});
  const std::vector<float> expected = example.gradients;
  CutModel cut(example, example.architecture.cuts());
  cut.forward(0, batch);
  const auto inputs = cut.inputs[0];
  for (size_t s = 0; s < cut.stages.size(); ++s) {
    const auto again = cut.stages[s]->forward(0, batch, inputs[s], 1);
    if (s + 1 == inputs.size()) continue;
    EXPECT_EQ(std::vector<float>(again.begin(), again.end()), inputs[s + 1]);
  }
  cut.loss(0, batch, 1);
  cut.backward(0);
  EXPECT_EQ(example.gradients, expected);
}

INSTANTIATE_TEST_SUITE_P(Models, EveryStage, testing::ValuesIn(kStageCases),
                         [](const testing::TestParamInfo<ModelCase>& c) { return c.param.name; });

}  // namespace
}  // namespace tutti

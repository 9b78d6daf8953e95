// A model that is cut costs what it costs as a whole, and its stages start as it does.
#include <gtest/gtest.h>

#include "models/stage.h"
#include "tests/models/model_of.h"

namespace tutti {
namespace {

struct Case {
  const char* name;
  ModelConfig config;
  std::vector<int64_t> shape;
  int64_t classes;
  size_t cuts;  // how many there are
};

class EveryCut : public testing::TestWithParam<Case> {
 protected:
  static Architecture whole() {
    const Case& c = GetParam();
    return make_architecture(c.config, c.shape, c.classes);
  }
};

TEST_P(EveryCut, AddsUpToTheWhole) {
  const Architecture a = whole();
  const std::vector<size_t> cuts = a.cuts();
  EXPECT_EQ(cuts.size(), GetParam().cuts);
  double flops = 0, backward = 0, activations = 0, passed = 0;
  size_t values = 0, layers = 0, parameters = 0;
  for (const Range range : stages_between(a, cuts)) {
    const Architecture stage = stage_of(a, range);
    EXPECT_EQ(stage.place.value, values);
    EXPECT_EQ(stage.place.layer, layers);
    EXPECT_EQ(stage.place.parameter, parameters);
    EXPECT_EQ(stage.place.last, range.end == a.layers.size());
    EXPECT_GT(stage.parameter_count, 0U);
    if (layers > 0) {
      EXPECT_EQ(stage.input, a.layers[layers - 1].output);
      passed += static_cast<double>(sizeof(float) * input_values(stage));
    }
    flops += stage.forward_flops();
    backward += stage.backward_flops({0, stage.parameter_count});
    activations += stage.activation_bytes();
    values += stage.parameter_count;
    layers += stage.layers.size();
    parameters += stage.parameters.size();
  }
  EXPECT_EQ(values, a.parameter_count);
  EXPECT_EQ(layers, a.layers.size());
  EXPECT_EQ(parameters, a.parameters.size());
  EXPECT_DOUBLE_EQ(flops, a.forward_flops());
  EXPECT_DOUBLE_EQ(backward, a.training_flops() - a.forward_flops());
  // What passes a cut is there on both sides of it.
  EXPECT_DOUBLE_EQ(activations, a.activation_bytes() + passed);
}

TEST_P(EveryCut, StartsAsTheWholeDoes) {
  const Architecture a = whole();
  std::vector<float> expected(a.parameter_count), actual(a.parameter_count);
  initialise(a, 7, expected);
  for (const Range range : stages_between(a, a.cuts())) {
    const Architecture stage = stage_of(a, range);
    initialise(stage, 7, std::span(actual).subspan(stage.place.value, stage.parameter_count));
  }
  EXPECT_EQ(actual, expected);
}

TEST_P(EveryCut, CostStagesHaveOutputsOfTheRightSize) {
  const Architecture a = whole();
  std::vector<float> parameters(a.parameter_count), gradients(a.parameter_count);
  const auto model = kCostModels.whole(a, {parameters, gradients}, {});
  Batch batch;
  batch.samples.resize(3);
  for (const Range range : stages_between(a, a.cuts())) {
    const auto stage = model->stage(range);
    const Architecture& own = stage->architecture();
    EXPECT_EQ(stage->parameters().data(), parameters.data() + own.place.value);
    EXPECT_EQ(stage->gradients().size(), own.parameter_count);
    EXPECT_EQ(stage->forward(1, batch, {}, 1).size(), 3 * output_values(own));
    EXPECT_EQ(stage->loss(1, batch, 1), 0);
    EXPECT_EQ(stage->evaluate(1, batch).count, 3U);
    EXPECT_EQ(stage->backward(1, {}).size(), own.place.layer == 0 ? 0 : 3 * input_values(own));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, EveryCut,
    testing::Values(Case{"logistic", model_of("logistic"), {9}, 4, 0},
                    Case{"linear", model_of("linear"), {9}, 0, 0},
                    Case{"mlp", model_of("mlp", {{"hidden", {8, 7, 6}}}), {5}, 3, 3},
                    Case{"lenet", model_of("lenet"), {1, 28, 28}, 10, 3},
                    Case{"resnet20", model_of("resnet20"), {3, 32, 32}, 10, 11},
                    Case{"transformer", model_of("transformer"), {32}, 60, 7}),
    [](const testing::TestParamInfo<Case>& c) { return c.param.name; });

TEST(Stages, OfSparseModelsThereAreNone) {
  const Architecture a = make_architecture(model_of("sparse_logistic"), {9}, 3);
  EXPECT_TRUE(a.cuts().empty());
}

}  // namespace
}  // namespace tutti

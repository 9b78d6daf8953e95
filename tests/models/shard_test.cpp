// Shards together compute what the whole model does, up to the order of additions.
#include "models/shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>

#include "models/slice.h"
#include "models/stage.h"
#include "tests/models/example.h"
#include "tests/models/model_of.h"
#include "tests/models/shard_threads.h"

namespace tutti {
namespace {

const ModelCase kShardCases[] = {
    {"logistic_l2", model_of("logistic", {{"l2", 0.3}}), {1, 3, 3}, 5},
    {"mlp", model_of("mlp", {{"hidden", {9, 6, 8}}, {"dropout", 0.3}}), {5}, 4},
    {"mlp_three", model_of("mlp", {{"hidden", {16, 12}}, {"dropout", 0.5}}), {7}, 6},
    {"mlp_regression", model_of("mlp", {{"hidden", {8, 6}}}), {5}, 0},
    {"lenet",
     model_of("lenet", {{"channels", {6, 16}}, {"hidden", {12, 8}}, {"dropout", 0.4}}),
     {1, 20, 20},
     4},
    {"lenet_odd",
     model_of("lenet", {{"channels", {5, 4}}, {"hidden", {7}}, {"dropout", 0.25}}),
     {3, 21, 18},
     5},
    {"resnet20",
     model_of("resnet20", {{"channels", {8, 16}}, {"blocks", 2}, {"groups", 4}}),
     {3, 8, 8},
     5},
    {"resnet20_batch_norm",
     model_of("resnet20",
              {{"channels", {4, 8}}, {"blocks", 2}, {"norm", "batch"}, {"ghost_batch", 3}}),
     {3, 8, 8},
     5},
    {"transformer",
     model_of("transformer", {{"dropout", 0.3}, {"width", 16}, {"depth", 2}, {"heads", 4}}),
     {6},
     11},
};

constexpr size_t kCounts[] = {1, 2, 4};

// A shard of these layers of the model, made on the thread that uses it: LibTorch counts its
// threads for each.
struct OwnShard {
  OwnShard(const Example& example, Range layers, size_t index, size_t count, ShardGroup& group)
      : architecture(shard_of(stage_of(example.architecture, layers), index, count)),
        parameters(architecture.parameter_count),
        gradients(architecture.parameter_count) {
    initialise(architecture, 1, parameters);
    model = tutti_torch_models.part(architecture, {parameters, gradients},
                                    {.seed = 1, .threads = 1}, &group);
  }
  StageModel* operator->() const { return model.get(); }

  Architecture architecture;
  std::vector<float> parameters, gradients;
  std::unique_ptr<StageModel> model;
};

// What the shards of a model came to, on a batch.
struct Together {
  Together(const Example& whole, size_t count, const Batch& batch)
      : architectures(count), gradients(count), parameters(count), losses(count), measured(count) {
    const Range all{0, whole.architecture.layers.size()};
    on_shards(count, [&](size_t index, ThreadGroup& group) {
      const OwnShard shard(whole, all, index, count, group);
      architectures[index] = shard->architecture();
      parameters[index].assign(shard->parameters().begin(), shard->parameters().end());
      std::fill(shard->gradients().begin(), shard->gradients().end(), NAN);
      shard->forward(0, batch, {}, 0.5F);
      losses[index] = shard->loss(0, batch, 0.5F);
      shard->backward(0, {});
      gradients[index].assign(shard->gradients().begin(), shard->gradients().end());
      shard->forward(0, batch, {}, std::nullopt);
      measured[index] = shard->evaluate(0, batch);
    });
  }

  std::vector<float> pasted(const Architecture& whole,
                            const std::vector<std::vector<float>>& values) const {
    std::vector<float> result(whole.parameter_count, NAN);
    for (size_t i = 0; i < values.size(); ++i)
      paste_shard(architectures[i], values[i], whole, result);
    return result;
  }

  std::vector<Architecture> architectures;
  std::vector<std::vector<float>> gradients, parameters;
  std::vector<double> losses;
  std::vector<Evaluation> measured;
};

class EveryShard : public testing::TestWithParam<ModelCase> {
 protected:
  static Example example() {
    return Example(GetParam().config, GetParam().shape, GetParam().classes);
  }
};

// An order of additions matters by at most 2 n u times the sum of the n terms' magnitudes, u being
// the unit roundoff; of errors that are independent, by about its root. A pass goes through the
// layers twice, and none of these small layers with norms or small weights makes errors larger.
// Relative to the largest value of each parameter: those with small gradients count as well.
double bound_of(const Architecture& architecture, const Parameter& parameter,
                const std::vector<float>& values) {
  double most_terms = 1, largest = 0;
  for (const Parameter& each : architecture.parameters)
    most_terms = std::max(
        most_terms, static_cast<double>(each.range.size()) / static_cast<double>(each.shape[0]));
  for (size_t i = parameter.range.begin; i < parameter.range.end; ++i)
    largest = std::max(largest, std::abs(double{values[i]}));
  const double u = std::ldexp(1.0, -24);
  return 2 * 2 * static_cast<double>(architecture.layers.size()) * std::sqrt(most_terms) * u *
         largest;
}

TEST_P(EveryShard, ComputesItsPartOfTheGradient) {
  Example example = EveryShard::example();
  const Batch batch = example.batch(3, 5, 4);
  const double loss = example.model->gradient(batch, 0.5F, {});
  for (const size_t count : kCounts) {
    const Together shards(example, count, batch);
    const std::vector<float> gradients = shards.pasted(example.architecture, shards.gradients);
    if (count == 1) {
      EXPECT_EQ(gradients, example.gradients);
    }
    for (const Parameter& parameter : example.architecture.parameters) {
      const double most = bound_of(example.architecture, parameter, example.gradients);
      for (size_t i = parameter.range.begin; i < parameter.range.end; ++i)
        ASSERT_NEAR(gradients[i], example.gradients[i], most)
            << count << " shards, " << parameter.name << ", value " << i;
    }
    for (const double own : shards.losses) {
      EXPECT_NEAR(own, loss, 1e-5 * std::abs(loss));
      EXPECT_EQ(own, shards.losses[0]) << "all know the same loss";
    }
  }
}

TEST_P(EveryShard, MeasuresWhatTheModelMeasures) {
  Example example = EveryShard::example();
  const Batch batch = example.batch(0, 30);
  const Evaluation expected = example.model->evaluate(batch);
  for (const size_t count : kCounts)
    for (const Evaluation& own : Together(example, count, batch).measured) {
      EXPECT_NEAR(own.loss, expected.loss, 1e-5 * expected.loss);
      EXPECT_EQ(own.correct, expected.correct);
      EXPECT_EQ(own.count, 30U);
    }
}

TEST_P(EveryShard, StartsAsTheWholeModelDoes) {
  Example example = EveryShard::example();
  const Batch batch = example.batch(0, 2);
  for (const size_t count : kCounts) {
    const Together shards(example, count, batch);
    EXPECT_EQ(shards.pasted(example.architecture, shards.parameters), example.parameters) << count;
  }
}

// What is not split stays the same on all shards, bit by bit.
TEST_P(EveryShard, AgreesOnWhatIsNotSplit) {
  Example example = EveryShard::example();
  const Together shards(example, 4, example.batch(3, 5, 4));
  for (size_t p = 0; p < example.architecture.parameters.size(); ++p) {
    const Parameter& first = shards.architectures[0].parameters[p];
    if (!first.slice.parts.empty()) continue;
    for (size_t shard = 1; shard < 4; ++shard) {
      const Range own = shards.architectures[shard].parameters[p].range;
      EXPECT_TRUE(
          std::equal(shards.gradients[0].begin() + static_cast<ptrdiff_t>(first.range.begin),
                     shards.gradients[0].begin() + static_cast<ptrdiff_t>(first.range.end),
                     shards.gradients[shard].begin() + static_cast<ptrdiff_t>(own.begin)))
          << first.name;
    }
  }
}

// Two sums for each pair of layers: one forward, one backward.
TEST_P(EveryShard, SumsAsOftenAsItSays) {
  Example example = EveryShard::example();
  const Batch batch = example.batch(0, 3);
  const Range all{0, example.architecture.layers.size()};
  on_shards(2, [&](size_t index, ThreadGroup& group) {
    const OwnShard shard(example, all, index, 2, group);
    shard->forward(0, batch, {}, 1);
    EXPECT_EQ(static_cast<size_t>(group.sums), forward_sums(shard->architecture()).size());
    shard->loss(0, batch, 1);
    group.sums = 0;
    shard->backward(0, {});
    EXPECT_EQ(static_cast<size_t>(group.sums), backward_sums(shard->architecture()).size());
  });
}

// Cut between regions, stages of shards are the shards of the whole model.
TEST_P(EveryShard, CanBeCutIntoStagesBetweenRegions) {
  Example example = EveryShard::example();
  const Batch batch = example.batch(3, 5, 4);
  const Together expected(example, 2, batch);
  const std::vector<size_t> cuts = shard_cuts(example.architecture, 2);
  const std::vector<Range> stages = stages_between(example.architecture, cuts);
  std::vector<float> gradients(example.architecture.parameter_count, NAN);
  std::vector<std::vector<float>> own(2);
  on_shards(2, [&](size_t index, ThreadGroup& group) {
    std::deque<OwnShard> models;
    std::vector<std::vector<float>> inputs(1);
    for (const Range layers : stages) {
      models.emplace_back(example, layers, index, 2, group);
      const auto output = models.back()->forward(0, batch, inputs.back(), 0.5F);
      inputs.emplace_back(output.begin(), output.end());
    }
    EXPECT_EQ(models.back()->loss(0, batch, 0.5F), expected.losses[0]);
    std::vector<float> slope;
    for (size_t s = models.size(); s-- > 0;) {
      const auto below = models[s]->backward(0, slope);
      slope.assign(below.begin(), below.end());
    }
    for (const auto& model : models)
      own[index].insert(own[index].end(), model->gradients().begin(), model->gradients().end());
  });
  EXPECT_EQ(own, expected.gradients);
}

INSTANTIATE_TEST_SUITE_P(Models, EveryShard, testing::ValuesIn(kShardCases),
                         [](const testing::TestParamInfo<ModelCase>& c) { return c.param.name; });

}  // namespace
}  // namespace tutti

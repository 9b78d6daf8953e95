// Running statistics: what a model tells of them, and what it does with them.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/models/example.h"
#include "tests/models/model_of.h"

namespace tutti {
namespace {

ModelConfig batch_normed(int64_t ghost_batch) {
  return model_of(
      "resnet20",
      {{"channels", {4, 6}}, {"blocks", 1}, {"norm", "batch"}, {"ghost_batch", ghost_batch}});
}

size_t values_behind(const Layer& layer, size_t samples) {
  return samples * static_cast<size_t>(layer.input[1] * layer.input[2]);
}

// Statistics that are those of a batch make evaluation do what training does with that batch. The
// followed variance is the unbiased one; training divides by all values.
TEST(BatchNorm, MeasuresAsItTrainsOnceStatisticsAreThoseOfTheBatch) {
  Example example(batch_normed(64), {2, 6, 6}, 3);
  const Batch batch = example.batch(0, 10);
  const float scale = 1.0F / 10;
  const double loss = example.model->gradient(batch, scale, {});
  EXPECT_GT(std::abs(example.model->evaluate(batch).loss - loss), 0.01) << "not yet";
  for (const Range range : example.architecture.statistics())
    for (size_t i = range.begin; i < range.end; ++i) example.parameters[i] -= example.gradients[i];
  for (const Layer& layer : example.architecture.layers) {
    if (layer.kind != LayerKind::kBatchNorm) continue;
    const auto values = static_cast<double>(values_behind(layer, 10));
    const Range variance = example.architecture.parameters[layer.parameters[3]].range;
    for (size_t i = variance.begin; i < variance.end; ++i)
      example.parameters[i] *= static_cast<float>((values - 1) / values);
  }
  // Floats: a statistic is rounded where it is told, and where it is taken.
  EXPECT_NEAR(example.model->evaluate(batch).loss, loss, 2e-5 * loss);
}

// Shares of a batch that are whole ghost batches add up to the batch, whoever computes them.
TEST(BatchNorm, GradientsOfGhostBatchesAddUp) {
  Example example(batch_normed(4), {2, 6, 6}, 3);
  const std::vector<float> all = example.gradient(example.batch(0, 12), 0.25F);
  std::vector<double> sum(all.size());
  for (const auto& [first, count] : {std::pair{0U, 8U}, std::pair{8U, 4U}}) {
    const std::vector<float> part = example.gradient(example.batch(first, count), 0.25F);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(part[i]);
  }
  double largest = 0, apart = 0;
  for (size_t i = 0; i < sum.size(); ++i) {
    largest = std::max(largest, std::abs(sum[i]));
    apart = std::max(apart, std::abs(sum[i] - static_cast<double>(all[i])));
  }
  EXPECT_LT(apart, 2e-6 * largest);  // sums of 12 x 36 floats, cut elsewhere
  // Other shares normalise other samples together.
  const std::vector<float> odd = example.gradient(example.batch(0, 7), 0.25F);
  const std::vector<float> rest = example.gradient(example.batch(7, 5), 0.25F);
  double different = 0;
  for (size_t i = 0; i < sum.size(); ++i)
    different = std::max(different, std::abs(sum[i] - static_cast<double>(odd[i] + rest[i])));
  EXPECT_GT(different, 1e-3 * largest);
}

TEST(BatchNorm, IsListedAsItIsInPyTorch) {
  const Architecture architecture = make_architecture(batch_normed(8), {3, 8, 8}, 10);
  std::vector<std::string> names;
  for (const Parameter& parameter : architecture.parameters)
    if (parameter.running_rate > 0) names.push_back(parameter.name);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "norm1.running_mean", "norm1.running_var", "layer1.0.norm1.running_mean",
                       "layer1.0.norm1.running_var", "layer1.0.norm2.running_mean",
                       "layer1.0.norm2.running_var", "layer2.0.norm1.running_mean",
                       "layer2.0.norm1.running_var", "layer2.0.norm2.running_mean",
                       "layer2.0.norm2.running_var"}));
  size_t values = 0;
  for (const Range range : architecture.trained()) values += range.size();
  for (const Range range : architecture.statistics()) values += range.size();
  EXPECT_EQ(values, architecture.parameter_count);
  EXPECT_EQ(architecture.statistics().size(), 5U) << "mean and variance of each are one range";
}

}  // namespace
}  // namespace tutti

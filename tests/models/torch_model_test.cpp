// What Model promises, beside right gradients (see gradient_test.cpp).
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>

#include "core/error.h"
#include "models/layout.h"
#include "tests/models/example.h"
#include "tests/models/model_of.h"

namespace tutti {
namespace {

const ModelConfig kLenet =
    model_of("lenet", {{"channels", {3, 4}}, {"hidden", {6}}, {"dropout", 0.5}});

Example lenet(uint64_t seed = 1, int threads = 1) {
  return Example(kLenet, {1, 20, 20}, 3, seed, threads);
}

void expect_close(const std::vector<float>& a, const std::vector<float>& b, float tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance) << i;
}

// Values of PyTorch 1.13.1 for the same layers and numbers.
TEST(TorchModel, AgreesWithPytorch) {
  Example example(model_of("lenet", {{"channels", {3, 4}}, {"hidden", {5}}, {"dropout", 0}}),
                  {2, 20, 20}, 3);
  for (size_t p = 0; p < example.architecture.parameters.size(); ++p) {
    const Parameter& parameter = example.architecture.parameters[p];
    std::vector<float> values;
    for (size_t i = 0; i < parameter.range.size(); ++i)
      values.push_back(static_cast<float>(
          std::sin(static_cast<double>(i) * 0.7 + static_cast<double>(p)) * 0.2));
    import_parameter(parameter, values, example.parameters);
  }
  Batch batch;
  for (int i = 0; i < 2 * 2 * 20 * 20; ++i)
    batch.features.push_back(static_cast<float>(std::cos(i * 0.37)));
  batch.labels = {2, 0};
  batch.samples = {0, 1};
  expect_close(scores_of(*example.model, batch),
               {0.211438566F, 0.133478612F, 0.211035371F, 0.208526671F, 0.136541188F, 0.208211333F},
               1e-6F);
  EXPECT_NEAR(example.model->gradient(batch, 1, {}), 2.148640871, 1e-6);
  const double expected[] = {0.00625308048, 0.0483054198, -0.0118016059, -0.157616017,
                             0.0114400483,  0.343880103,  -0.0697455058, 0.157606792};
  for (size_t p = 0; p < std::size(expected); ++p) {
    const Parameter& parameter = example.architecture.parameters[p];
    std::vector<float> slopes(parameter.range.size());
    export_parameter(parameter, example.gradients, slopes);
    double sum = 0;  // sensitive to the order of the values
    for (size_t i = 0; i < slopes.size(); ++i)
      sum += static_cast<double>(slopes[i]) * std::cos(static_cast<double>(i));
    EXPECT_NEAR(sum, expected[p], 1e-5) << parameter.name;
  }
}

// The columns 1, a and b are orthogonal, so the least-squares solution is a mean for each; there
// the gradient vanishes. Elsewhere it is X^T (X w - y), here 4 times the distance from the
// solution.
TEST(TorchModel, LinearHasItsClosedForm) {
  Example example(model_of("linear"), {2}, 0);
  Batch batch;
  batch.features = {1, 1, -1, 1, 1, -1, -1, -1};
  batch.targets = {7, 2, 3, 4};  // means with a, b and 1: 1, 0.5 and 4; what is left over: +-1.5
  batch.samples = {0, 1, 2, 3};
  example.parameters = {1, 0.5F, 4};
  EXPECT_DOUBLE_EQ(example.model->gradient(batch, 1, {}), 4 * 1.5 * 1.5 / 2);
  EXPECT_EQ(example.gradients, (std::vector<float>{0, 0, 0}));
  example.parameters = {3, 0.25F, 3};
  example.model->gradient(batch, 0.5F, {});
  EXPECT_EQ(example.gradients, (std::vector<float>{4, -0.5F, -2}));
}

TEST(TorchModel, ReportsEachRangeOnceWhenItIsFinal) {
  Example example = lenet();
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

TEST(TorchModel, EmptyBatchGivesZerosAndReportsAll) {
  Example example = lenet();
  example.gradients.assign(example.gradients.size(), 5.0F);
  std::vector<Range> ranges;
  EXPECT_EQ(example.model->gradient({}, 1, [&](Range range) { ranges.push_back(range); }), 0);
  EXPECT_EQ(ranges, ready_ranges(example.architecture));
  EXPECT_EQ(example.gradients, std::vector<float>(example.gradients.size(), 0));
  EXPECT_EQ(example.model->evaluate({}).count, 0U);
  example.model->predict({}, {});
}

// A mask belongs to a sample, not to its place in a batch: shares of a batch add up.
TEST(TorchModel, GradientsOfSharesAddUp) {
  for (const double l2 : {0.0, 0.2}) {
    ModelConfig config = kLenet;
    if (l2 > 0) config = model_of("logistic", {{"l2", l2}});
    Example example(config, {1, 20, 20}, 3);
    const auto whole = example.gradient(example.batch(0, 7));
    auto sum = example.gradient(example.batch(4, 3));
    for (uint32_t sample = 0; sample < 4; ++sample) {
      const auto one = example.gradient(example.batch(sample, 1));
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
    }
    expect_close(whole, sum, 2e-5F);
  }
}

// The second convolution's 20 x 25 values for each of 64 pixels: the patches of 4 samples are what
// a block of them holds (src/models/torch/convolution.cpp), so nine samples go in three blocks, the
// last one smaller, and one sample alone goes in one.
TEST(TorchModel, BlocksOfPatchesAddUpToTheWholeBatch) {
  const uint32_t samples = 9;
  Example example(model_of("lenet", {{"channels", {20, 50}}, {"hidden", {8}}, {"dropout", 0}}),
                  {1, 28, 28}, 3);
  const std::vector<float> whole = example.gradient(example.batch(0, samples));
  std::vector<double> sum(whole.size());
  for (uint32_t sample = 0; sample < samples; ++sample) {
    const std::vector<float> one = example.gradient(example.batch(sample, 1));
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += double{one[i]};
  }
  // The longest sums, those of the first convolution, have 9 x 24 x 24 terms: their order matters
  // by about 2 sqrt(n) u of their size, and so do the errors of one sample.
  const double relative = 4 * std::sqrt(samples * 24.0 * 24.0) * std::ldexp(1.0, -24);
  for (const Parameter& parameter : example.architecture.parameters) {
    double largest = 0;
    for (size_t i = parameter.range.begin; i < parameter.range.end; ++i)
      largest = std::max(largest, std::abs(sum[i]));
    ASSERT_GT(largest, 0) << parameter.name;
    for (size_t i = parameter.range.begin; i < parameter.range.end; ++i)
      ASSERT_NEAR(double{whole[i]}, sum[i], relative * largest)
          << parameter.name << ", value " << i;
  }
}

TEST(TorchModel, DropoutFollowsSeedAndStepInTrainingOnly) {
  Example example = lenet();
  const auto first = example.gradient(example.batch(0, 4, 1));
  EXPECT_EQ(first, example.gradient(example.batch(0, 4, 1)));
  EXPECT_NE(first, example.gradient(example.batch(0, 4, 2)));
  Example other = lenet(2);
  other.parameters = example.parameters;
  EXPECT_NE(first, other.gradient(example.batch(0, 4, 1)));
  EXPECT_EQ(scores_of(*example.model, example.batch(0, 4, 1)),
            scores_of(*other.model, example.batch(0, 4, 2)));
}

TEST(TorchModel, EvaluateAgreesWithPredictAlsoInLargeBatches) {
  Example example = lenet();
  const Batch batch = example.batch(0, 150);
  const auto scores = scores_of(*example.model, batch);
  double loss = 0, correct = 0;
  for (size_t row = 0; row < 150; ++row) {
    const float* own = scores.data() + 3 * row;
    const auto label = static_cast<size_t>(batch.labels[row]);
    loss += std::log(std::exp(own[0]) + std::exp(own[1]) + std::exp(own[2])) - own[label];
    correct += std::max_element(own, own + 3) - own == batch.labels[row] ? 1 : 0;
  }
  const Evaluation result = example.model->evaluate(batch);
  EXPECT_NEAR(result.loss, loss, 1e-3);
  EXPECT_EQ(result.correct, correct);
  EXPECT_EQ(result.count, 150U);
  const auto tail = scores_of(*example.model, example.batch(140, 10));
  expect_close({scores.end() - 30, scores.end()}, tail, 1e-6F);
}

TEST(TorchModel, PenaltyShapesTrainingButNotEvaluation) {
  Example plain(model_of("logistic"), {4}, 3);
  Example penalised(model_of("logistic", {{"l2", 0.5}}), {4}, 3);
  const Batch batch = plain.batch(0, 6);
  double squares = 0;
  for (size_t i = 0; i < 12; ++i) squares += std::pow(static_cast<double>(plain.parameters[i]), 2);
  EXPECT_NEAR(penalised.model->gradient(batch, 0.25F, {}),
              plain.model->gradient(batch, 0.25F, {}) + 6 * 0.25 * squares, 1e-6);
  for (size_t i = 0; i < 15; ++i) {
    const float penalty = i < 12 ? 0.25F * 6 * 0.5F * plain.parameters[i] : 0;  // biases go free
    EXPECT_NEAR(penalised.gradients[i], plain.gradients[i] + penalty, 1e-6F);
  }
  EXPECT_EQ(penalised.model->evaluate(batch).loss, plain.model->evaluate(batch).loss);
}

TEST(TorchModel, TwoModelsAreIndependentAndBitwiseStable) {
  Example a = lenet(), b = lenet(), c = lenet(3);
  const Batch batch = a.batch(0, 6), large = a.batch(3, 20);
  const auto alone = a.gradient(batch);
  c.gradient(large);
  b.gradient(large);  // another batch size in between changes nothing either
  c.model->evaluate(large);
  EXPECT_EQ(b.gradient(batch), alone);
  EXPECT_EQ(a.gradients, alone);
  EXPECT_NE(c.gradient(batch), alone);
}

TEST(TorchModel, SeesParametersThatChangeBetweenSteps) {
  Example example = lenet();
  const Batch batch = example.batch(0, 4);
  const auto before = example.gradient(batch);
  for (float& value : example.parameters) value *= 0.5F;
  EXPECT_NE(example.gradient(batch), before);
}

// Relu and pooling must not take a maximum that hides what went wrong.
TEST(TorchModel, NotANumberShowsInTheLoss) {
  for (size_t parameter = 0; parameter < 8; ++parameter) {
    ModelConfig config = kLenet;
    set(config, "dropout", 0);
    Example example(config, {1, 20, 20}, 3);
    const size_t at = example.architecture.parameters[parameter].range.begin;
    example.parameters[at] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(example.model->gradient(example.batch(0, 2), 1, {}))) << parameter;
    EXPECT_TRUE(std::isnan(example.model->evaluate(example.batch(0, 2)).loss)) << parameter;
  }
}

TEST(TorchModel, RefusesDataThatDoesNotFit) {
  Example example = lenet();
  Batch batch = example.batch(0, 2);
  batch.labels[1] = 3;
  EXPECT_THROW(example.model->gradient(batch, 1, {}), DataError);
  batch.labels.pop_back();
  EXPECT_THROW(example.model->gradient(batch, 1, {}), std::logic_error);
  batch.features.pop_back();
  EXPECT_THROW(example.model->evaluate(batch), std::logic_error);
}

TEST(TorchModel, IsExportedByName) {
  const void* symbol = dlsym(RTLD_DEFAULT, "tutti_torch_models");
  ASSERT_NE(symbol, nullptr);
  EXPECT_EQ(static_cast<const ModelMaker*>(symbol)->whole, tutti_torch_models.whole);
}

// Runs `body` in a forked child; returns whether it came back true.
template <class Body>
bool in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

ptrdiff_t threads_here() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

TEST(TorchModel, OneThreadStaysOneThreadSoThatForkingIsSafe) {
  Example example = lenet();
  const Batch batch = example.batch(0, 32);
  const auto expected = example.gradient(batch);
  EXPECT_EQ(threads_here(), 1) << "is OPENBLAS_NUM_THREADS=1 set?";
  EXPECT_TRUE(in_child([&] {
    Example own = lenet();
    return own.gradient(batch) == expected && threads_here() == 1;
  }));
}

TEST(TorchModel, MoreThreadsGiveTheSameUpToRounding) {
  Example example = lenet();
  const Batch batch = example.batch(0, 32);
  const auto expected = example.gradient(batch);
  EXPECT_TRUE(in_child([&] {  // leaves this process without a pool of threads
    Example own = lenet(1, 2);
    const auto gradients = own.gradient(batch);
    for (size_t i = 0; i < gradients.size(); ++i)
      if (std::abs(gradients[i] - expected[i]) > 1e-4F) return false;
    return threads_here() > 1;
  }));
}

}  // namespace
}  // namespace tutti

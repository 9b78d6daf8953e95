// Sizes, costs, start values and cuts of the models with residual blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"
#include "data/dataset.h"
#include "models/model.h"
#include "tests/models/model_of.h"

namespace tutti {
namespace {

Architecture resnet() { return make_architecture(model_of("resnet20"), {3, 32, 32}, 10); }
Architecture transformer() { return make_architecture(model_of("transformer"), {32}, 90); }

const Layer& layer_of(const Architecture& a, const std::string& name) {
  const auto found = std::find_if(a.layers.begin(), a.layers.end(),
                                  [&](const Layer& layer) { return layer.name == name; });
  if (found == a.layers.end()) throw std::runtime_error("no layer " + name);
  return *found;
}

const Parameter& parameter_of(const Architecture& a, const std::string& name) {
  const auto found = std::find_if(a.parameters.begin(), a.parameters.end(),
                                  [&](const Parameter& p) { return p.name == name; });
  if (found == a.parameters.end()) throw std::runtime_error("no parameter " + name);
  return *found;
}

// The paper's 0.27 million; with one factor and offset a channel, group norm has as many as batch
// norm.
TEST(Resnet20, HasTheKnownSize) {
  const Architecture a = resnet();
  EXPECT_EQ(a.parameter_count, 269722U);
  const auto convolutions = std::count_if(a.layers.begin(), a.layers.end(), [](const Layer& l) {
    return l.kind == LayerKind::kConvolution;
  });
  EXPECT_EQ(convolutions + 1, 20);  // and the affine layer
  EXPECT_EQ(layer_of(a, "layer2.0.conv1").output, (std::vector<int64_t>{32, 16, 16}));
  EXPECT_EQ(layer_of(a, "layer3.2.add").output, (std::vector<int64_t>{64, 8, 8}));
  EXPECT_EQ(parameter_of(a, "layer2.0.conv1.weight").shape, (std::vector<int64_t>{32, 16, 3, 3}));
}

TEST(Resnet20, FlopsFollowTheFormula) {
  const Architecture a = resnet();
  const double first = 2 * 27 * 16 * 1024, stage1 = 2 * 144 * 16 * 1024;
  const double into2 = 2 * 144 * 32 * 256, stage2 = 2 * 288 * 32 * 256;
  const double into3 = 2 * 288 * 64 * 64, stage3 = 2 * 576 * 64 * 64;
  EXPECT_DOUBLE_EQ(layer_of(a, "conv1").flops, first);
  EXPECT_DOUBLE_EQ(layer_of(a, "layer1.2.conv2").flops, stage1);
  EXPECT_DOUBLE_EQ(layer_of(a, "layer2.0.conv1").flops, into2);
  EXPECT_DOUBLE_EQ(layer_of(a, "layer3.1.conv2").flops, stage3);
  const double products = first + 6 * stage1 + into2 + 5 * stage2 + into3 + 5 * stage3;
  EXPECT_NEAR(products, 81e6, 1e6);  // 40.5 million multiplications and additions
  const double sizes[] = {16 * 1024, 32 * 256, 64 * 64};  // values of an image in each stage
  double others = sizes[0] * (8 + 1) + sizes[2] + (2 * 64 + 1) * 10;
  for (double size : sizes) others += 3 * size * (2 * 8 + 2 + 1);  // norms, relus, add
  EXPECT_DOUBLE_EQ(a.forward_flops(), products + others);
}

TEST(Transformer, SizeAndFlopsFollowTheFormula) {
  const Architecture a = transformer();
  const size_t block =
      4 * 64 + (3 * 64 * 64 + 3 * 64) + (64 * 64 + 64) + (256 * 64 + 256) + (64 * 256 + 64);
  EXPECT_EQ(a.parameter_count, 90U * 64 + 32 * 64 + 2 * block + 2 * 64 + 64 * 90 + 90);
  EXPECT_EQ(a.positions, 32);
  EXPECT_EQ(a.outputs, 90);
  const double t = 32, w = 64;
  const double attention = t * t * (4 * w + 10 * 4);
  EXPECT_DOUBLE_EQ(layer_of(a, "block1.attn").flops, attention);
  const double affine =
      t * ((2 * w + 1) * 3 * w + (2 * w + 1) * w + (2 * w + 1) * 4 * w + (8 * w + 1) * w);
  const double small = t * w * (8 + 8 + 1 + 1 + 4 * 10);  // norms, adds, gelu of four times as much
  EXPECT_DOUBLE_EQ(a.forward_flops(),
                   t * w + 2 * (attention + affine + small) + t * w * 8 + t * (2 * w + 1) * 90);
}

TEST(Transformer, ActivationsAreCountedWithTheAttentionWeights) {
  const double t = 32, w = 64;
  const double norm = t * w + 2 * t, attention = 2 * t * w + 3 * t * w + 2 * 4 * t * t;
  const double block = 2 * norm + 3 * t * w + attention + t * w + 2 * 4 * t * w + t * w;
  EXPECT_DOUBLE_EQ(transformer().activation_bytes(), 4 * (t + t * w + 2 * block + norm + t * 90));
}

TEST(Transformer, ParametersAreNamedAndStartAsInPytorch) {
  const Architecture a = transformer();
  EXPECT_EQ(parameter_of(a, "embed.weight").init_deviation, 1);
  EXPECT_EQ(parameter_of(a, "position.weight").shape, (std::vector<int64_t>{32, 64}));
  const Parameter& in = parameter_of(a, "block2.attn.in_proj_weight");
  EXPECT_EQ(in.shape, (std::vector<int64_t>{192, 64}));
  EXPECT_DOUBLE_EQ(in.init_bound, std::sqrt(6.0 / (192 + 64)));  // xavier_uniform_
  EXPECT_EQ(parameter_of(a, "block2.attn.in_proj_bias").init_bound, 0);
  EXPECT_EQ(parameter_of(a, "block2.attn.out_proj.bias").init_bound, 0);
  EXPECT_DOUBLE_EQ(parameter_of(a, "block1.attn.out_proj.weight").init_bound, 1.0 / 8);
  EXPECT_DOUBLE_EQ(parameter_of(a, "block1.fc2.bias").init_bound, 1.0 / 16);
  EXPECT_EQ(parameter_of(a, "block1.norm1.weight").init_mean, 1);
  std::vector<float> values(a.parameter_count);
  initialise(a, 1, values);
  const Range embedding = parameter_of(a, "embed.weight").range;
  double squares = 0;
  for (size_t i = embedding.begin; i < embedding.end; ++i)
    squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  // The mean of n squares of normal numbers deviates by sqrt(2 / n); four times that.
  const auto count = static_cast<double>(embedding.size());
  EXPECT_NEAR(squares / count, 1, 4 * std::sqrt(2 / count));
  EXPECT_EQ(values[parameter_of(a, "norm.weight").range.begin], 1);
  EXPECT_EQ(values[parameter_of(a, "norm.bias").range.begin], 0);
}

// What passes a cut is one tensor: nothing may be under way beside the block.
TEST(Cuts, NeverSeparateASkipFromItsAdd) {
  for (const Architecture& a : {resnet(), transformer()}) {
    const std::vector<size_t> cuts = a.cuts();
    size_t adds = 0;
    for (const Layer& add : a.layers) {
      if (add.kind != LayerKind::kAdd) continue;
      ++adds;
      const auto end = static_cast<size_t>(&add - a.layers.data());
      EXPECT_EQ(a.layers[add.skip].kind, LayerKind::kSkip);
      for (size_t cut : cuts) EXPECT_FALSE(cut > add.skip && cut <= end) << a.layers[cut].name;
    }
    EXPECT_EQ(adds, a.kind == "resnet20" ? 9U : 4U);
    size_t begin = 0;
    std::vector<size_t> ends = cuts;
    ends.push_back(a.layers.size());
    for (size_t end : ends) {
      EXPECT_TRUE(std::any_of(a.layers.begin() + static_cast<ptrdiff_t>(begin),
                              a.layers.begin() + static_cast<ptrdiff_t>(end),
                              [](const Layer& layer) { return !layer.parameters.empty(); }));
      begin = end;
    }
  }
  const Architecture a = resnet();
  std::vector<std::string> names;
  for (size_t cut : a.cuts()) names.push_back(a.layers[cut].name);
  EXPECT_EQ(names.front(), "norm1");
  EXPECT_EQ(names[1], "layer1.0.skip");
  EXPECT_EQ(names.back(), "fc");
  EXPECT_EQ(names.size(), 11U);
}

class Sequences : public Dataset {
 public:
  explicit Sequences(int64_t answers) : answers_(answers) {}
  size_t size() const override { return 1; }
  std::vector<int64_t> sample_shape() const override { return {8}; }
  int64_t classes() const override { return 5; }
  int64_t answers_per_sample() const override { return answers_; }
  void gather(std::span<const uint32_t>, Batch&) const override {}
  size_t memory_bytes() const override { return 0; }

 private:
  int64_t answers_;
};

TEST(Transformer, GoesWithSequencesOnly) {
  EXPECT_EQ(make_architecture(model_of("transformer"), Sequences(8)).positions, 8);
  EXPECT_EQ(make_architecture(model_of("mlp"), Sequences(1)).positions, 1);
  EXPECT_THROW(make_architecture(model_of("transformer"), Sequences(1)), ConfigError);
  EXPECT_THROW(make_architecture(model_of("mlp"), Sequences(8)), ConfigError);
}

}  // namespace
}  // namespace tutti

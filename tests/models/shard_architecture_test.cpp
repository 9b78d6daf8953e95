// What shards consist of: which layers are split, what they cost, and whose parameters they have.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/bytes.h"
#include "models/shard.h"
#include "models/slice.h"
#include "models/split_loss.h"
#include "models/stage.h"
#include "tests/models/model_of.h"

namespace tutti {
namespace {

Architecture lenet() { return make_architecture(model_of("lenet"), {1, 28, 28}, 10); }
Architecture resnet20() { return make_architecture(model_of("resnet20"), {3, 32, 32}, 10); }
Architecture transformer() { return make_architecture(model_of("transformer"), {32}, 50); }
Architecture mlp(std::vector<int64_t> hidden, int64_t classes) {
  return make_architecture(model_of("mlp", {{"hidden", std::move(hidden)}}), {12}, classes);
}

std::vector<std::string> regions_of(const Architecture& whole, size_t shards) {
  std::vector<std::string> names;
  for (const SplitRegion& region : split_regions(whole, shards))
    names.push_back(whole.layers[region.layers.begin].name + " " +
                    whole.layers[region.layers.end - 1].name);
  return names;
}

using Names = std::vector<std::string>;

TEST(Regions, ArePairsOfLayers) {
  EXPECT_EQ(regions_of(lenet(), 2), (Names{"conv1 conv2", "fc1 fc2"}));
  EXPECT_EQ(regions_of(mlp({8, 8}, 4), 2), (Names{"fc1 fc2", "fc3 fc3"}));
  EXPECT_EQ(regions_of(mlp({8, 8}, 0), 2), (Names{"fc1 fc2"})) << "one number is not split";
  const Names blocks = regions_of(resnet20(), 4);
  ASSERT_EQ(blocks.size(), 10U) << "nine blocks and the scores";
  EXPECT_EQ(blocks[0], "layer1.0.conv1 layer1.0.conv2");
  EXPECT_EQ(blocks[9], "fc fc");
  EXPECT_EQ(
      regions_of(transformer(), 4),
      (Names{"embed embed", "block1.attn.in_proj block1.attn.out_proj", "block1.fc1 block1.fc2",
             "block2.attn.in_proj block2.attn.out_proj", "block2.fc1 block2.fc2", "head head"}));
}

TEST(Regions, NeedAUnitForEachShard) {
  EXPECT_EQ(regions_of(resnet20(), 16), Names{}) << "eight groups, ten classes";
  EXPECT_EQ(regions_of(mlp({6, 5, 16}, 4), 8), (Names{"fc3 fc4"}));
}

// Two sums in each block and direction, as in Megatron; below the first parameters there is nobody
// who needs a gradient.
TEST(Sums, AreTwoForEachBlockAndDirection) {
  const Architecture shard = shard_of(transformer(), 0, 2);
  EXPECT_EQ(forward_sums(shard).size(), 1U + 2 * 2) << "embedding, two blocks";
  EXPECT_EQ(backward_sums(shard).size(), 1U + 2 * 2) << "scores, two blocks";
  EXPECT_EQ(forward_sums(shard_of(lenet(), 0, 2)).size(), 2U);
  EXPECT_EQ(backward_sums(shard_of(lenet(), 0, 2)).size(), 1U);
  EXPECT_EQ(forward_sums(shard_of(resnet20(), 0, 2)).size(), 9U);
  EXPECT_EQ(backward_sums(shard_of(resnet20(), 0, 2)).size(), 10U);
  for (const ShardSum& sum : forward_sums(shard)) EXPECT_EQ(sum.values, 32U * 64);
}

TEST(Cuts, AreBetweenRegions) {
  const Architecture whole = lenet();
  ASSERT_EQ(shard_cuts(whole, 1), whole.cuts());
  ASSERT_EQ(shard_cuts(whole, 2).size(), 1U);
  EXPECT_EQ(whole.layers[shard_cuts(whole, 2)[0]].name, "fc1");
  EXPECT_EQ(shard_cuts(transformer(), 2), transformer().cuts());
}

// Every value of a split parameter is on one shard, every other parameter on all of them.
TEST(Slices, TogetherAreTheModel) {
  for (const Architecture& whole : {lenet(), resnet20(), transformer(), mlp({9, 7, 5}, 4)})
    for (const size_t count : {2U, 4U}) {
      std::vector<int> copies(whole.parameter_count);
      double split_flops = 0;
      size_t largest = 0;
      for (size_t index = 0; index < count; ++index) {
        const Architecture shard = shard_of(whole, index, count);
        largest = std::max(largest, shard.parameter_count);
        split_flops += shard.forward_flops();
        const std::vector<float> ones(shard.parameter_count, 1.0F);
        std::vector<float> marked(whole.parameter_count, 0.0F);
        paste_shard(shard, ones, whole, marked);
        for (size_t i = 0; i < copies.size(); ++i) copies[i] += marked[i] > 0 ? 1 : 0;
        EXPECT_EQ(shard.parameters.size(), whole.parameters.size());
      }
      const Architecture first = shard_of(whole, 0, count);
      for (size_t p = 0; p < whole.parameters.size(); ++p) {
        const bool is_split = !first.parameters[p].slice.parts.empty();
        for (size_t i = whole.parameters[p].range.begin; i < whole.parameters[p].range.end; ++i)
          ASSERT_EQ(copies[i], is_split ? 1 : static_cast<int>(count)) << whole.parameters[p].name;
      }
      EXPECT_LT(largest, whole.parameter_count);
      EXPECT_GE(split_flops, 0.999 * whole.forward_flops());
    }
}

// A group that notes what it is asked for.
class Notes : public ShardGroup {
 public:
  void sum(std::span<float> values) override { sums.push_back(values.size()); }
  void maximum(std::span<float> values) override { maxima.push_back(values.size()); }
  std::vector<size_t> sums, maxima;
};

TEST(CostShard, SumsAsTheOneThatComputesWould) {
  const Architecture whole = transformer();
  const Architecture part = shard_of(whole, 1, 2);
  Buffer<float> parameters(part.parameter_count), gradients(part.parameter_count);
  Notes notes;
  const auto shard = kCostModels.part(part, {parameters.span(), gradients.span()}, {}, &notes);
  EXPECT_EQ(shard->parameters().size(), part.parameter_count);
  Batch batch;
  batch.samples = {0, 1, 2};
  shard->forward(0, batch, {}, 1);
  EXPECT_EQ(notes.sums, std::vector<size_t>(5, 3 * 32 * 64));
  shard->loss(0, batch, 1);
  EXPECT_EQ(notes.maxima, std::vector<size_t>{split_loss_maximum(3 * 32)});
  EXPECT_EQ(notes.sums.back(), split_loss_sum(3 * 32));
  notes.sums.clear();
  shard->backward(0, {});
  EXPECT_EQ(notes.sums, std::vector<size_t>(5, 3 * 32 * 64));
}

}  // namespace
}  // namespace tutti

// Tests how the views of several devices and what they say of a sample become one: by hand, and
// against finite differences.
#include "strategies/early_exit/fusion.h"

#include <gtest/gtest.h>

#include <numeric>

#include "core/random.h"
#include "models/branches.h"
#include "models/builder.h"
#include "models/stage.h"
#include "tests/models/model_of.h"

namespace tutti {
namespace {

using Floats = std::vector<float>;
using Parts = std::vector<Floats>;
using Shape = std::vector<int64_t>;

const Views kTwo({4}, 2);         // two of four features each
const Views kFour({1, 4, 6}, 4);  // a grid of 2 x 2

TEST(Views, CutAnImageIntoAGridAndFeaturesIntoRanges) {
  EXPECT_EQ(kTwo.shape(), Shape({2}));
  EXPECT_EQ(kTwo.cut(1, Floats{1, 2, 3, 4, 5, 6, 7, 8}), (Floats{3, 4, 7, 8})) << "of two samples";
  EXPECT_EQ(kFour.shape(), Shape({1, 2, 3}));
  Floats image(24);
  std::iota(image.begin(), image.end(), 0.0F);
  EXPECT_EQ(kFour.cut(0, image), (Floats{0, 1, 2, 6, 7, 8}));
  EXPECT_EQ(kFour.cut(1, image), (Floats{3, 4, 5, 9, 10, 11}));
  EXPECT_EQ(kFour.cut(2, image), (Floats{12, 13, 14, 18, 19, 20}));
  // The view is the left half of two channels of 2 x 2 pixels.
  EXPECT_EQ(Views({2, 2, 2}, 2).cut(0, Floats{1, 2, 3, 4, 5, 6, 7, 8}), (Floats{1, 3, 5, 7}));
}

TEST(Views, OverlapWhereTheSampleCannotBeCutEvenlyAndMissNothing) {
  for (size_t count = 1; count <= 12; ++count) {
    const Views views({1, 28, 28}, count);
    EXPECT_EQ(views.count(), count);
    std::vector<int> seen(28 * 28, 0);
    Floats image(28 * 28);
    std::iota(image.begin(), image.end(), 0.0F);
    for (size_t view = 0; view < count; ++view)
      for (const float pixel : views.cut(view, image)) ++seen[static_cast<size_t>(pixel)];
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 0), 0) << count;
  }
  EXPECT_EQ(Views({1, 28, 28}, 6).rows(), 2u);
  EXPECT_EQ(Views({1, 28, 28}, 6).columns(), 3u);
}

// There are two devices and two samples, with two values each.
const Parts kSaid = {{1, 5, 0, 2}, {3, 4, 0, -2}};
const Floats kSlope = {10, 20, 30, 40};

TEST(Fusion, OfAMaximumByHand) {
  Fusion fusion(Fuse::kMax, kTwo, {2});
  Floats fused;
  Parts slopes;
  fusion.forward(kSaid, fused);
  EXPECT_EQ(fused, (Floats{3, 5, 0, 2}));
  fusion.backward(kSlope, slopes);
  EXPECT_EQ(slopes, (Parts{{0, 20, 30, 40}, {10, 0, 0, 0}})) << "of equal ones to the first";
}

TEST(Fusion, OfAMeanByHand) {
  Fusion fusion(Fuse::kMean, kTwo, {2});
  Floats fused;
  Parts slopes;
  fusion.forward(kSaid, fused);
  EXPECT_EQ(fused, (Floats{2, 4.5F, 0, 0}));
  fusion.backward(kSlope, slopes);
  EXPECT_EQ(slopes, (Parts{{5, 10, 15, 20}, {5, 10, 15, 20}}));
}

TEST(Fusion, OfAConcatenationByHand) {
  Fusion fusion(Fuse::kConcat, kTwo, {2});
  Floats fused;
  Parts slopes;
  fusion.forward(kSaid, fused);
  EXPECT_EQ(fused, (Floats{1, 5, 3, 4, 0, 2, 0, -2})) << "sample by sample";
  fusion.backward(Floats{1, 2, 3, 4, 5, 6, 7, 8}, slopes);
  EXPECT_EQ(slopes, (Parts{{1, 2, 5, 6}, {3, 4, 7, 8}}));
}

// Four images of 1 x 2 pixels, with two channels last, make one of 2 x 4 pixels.
TEST(Fusion, ConcatenatedImagesLieAsTheirViewsDo) {
  Fusion fusion(Fuse::kConcat, kFour, {2, 1, 2});
  EXPECT_EQ(fused_shape(Fuse::kConcat, kFour, {2, 1, 2}), Shape({2, 2, 4}));
  Floats fused;
  fusion.forward({{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}, {13, 14, 15, 16}}, fused);
  EXPECT_EQ(fused, (Floats{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}));
  // Four images of 2 x 1 pixels and one channel make two columns of four pixels, row by row.
  Fusion tall(Fuse::kConcat, kFour, {1, 2, 1});
  tall.forward({{1, 2}, {3, 4}, {5, 6}, {7, 8}}, fused);
  EXPECT_EQ(fused, (Floats{1, 3, 2, 4, 5, 7, 6, 8}));
}

// Checks the gradient of sum(weight x fused) with respect to every value of every part.
TEST(Fusion, GradientsAreThoseOfFiniteDifferences) {
  for (const Fuse how : {Fuse::kMax, Fuse::kMean, Fuse::kConcat}) {
    Random random(5, Stream::kTest);
    Fusion fusion(how, kFour, {2, 3, 2});
    Parts parts(4);
    for (Floats& part : parts)
      for (size_t i = 0; i < 2 * fusion.part_values(); ++i)
        part.push_back(static_cast<float>(random.normal()));
    Floats fused, weights;
    fusion.forward(parts, fused);
    for (size_t i = 0; i < fused.size(); ++i)
      weights.push_back(static_cast<float>(random.normal()));
    Parts slopes;
    fusion.backward(weights, slopes);
    const auto value = [&] {
      fusion.forward(parts, fused);
      return std::inner_product(fused.begin(), fused.end(), weights.begin(), 0.0);
    };
    for (size_t part = 0; part < parts.size(); ++part)
      for (size_t i = 0; i < parts[part].size(); ++i) {
        constexpr float kStep = 1.0F / 1024;  // exact, and too small to change who has the maximum
        const float before = parts[part][i];
        parts[part][i] = before + kStep;
        const double above = value();
        parts[part][i] = before - kStep;
        const double below = value();
        parts[part][i] = before;
        const double difference = (above - below) / double{2 * kStep};
        EXPECT_NEAR(double{slopes[part][i]}, difference, 2e-3) << static_cast<int>(how);
      }
  }
}

TEST(Branches, EachHasTheFirstLayersAndTheRestTakesWhatTheyMakeTogether) {
  const Architecture lenet = make_architecture(
      model_of("lenet", {{"channels", {3, 5}}, {"hidden", {7}}}), {1, 28, 28}, 10);
  const Views views({1, 28, 28}, 4);
  const Architecture all = branched(
      lenet, {.cut = 3,
              .names = {"a", "b", "c", "d"},
              .view = views.shape(),
              .fused = [&](const Shape& part) { return fused_shape(Fuse::kConcat, views, part); }});
  EXPECT_EQ(all.layers.size(), lenet.layers.size() + 3 * 3);
  const Architecture second = stage_of(all, {3, 6});
  EXPECT_EQ(second.place.layer, 0u) << "it takes samples";
  EXPECT_EQ(second.place.value, 78u) << "after the 3 x (25 + 1) of the first";
  EXPECT_EQ(second.input, Shape({1, 14, 14}));
  EXPECT_EQ(second.parameters[0].name, "b.conv1.weight");
  EXPECT_EQ(second.layers.back().output, Shape({3, 5, 5}));
  const Architecture rest = stage_of(all, {12, all.layers.size()});
  EXPECT_GT(rest.place.layer, 0u);
  EXPECT_TRUE(rest.place.last);
  EXPECT_EQ(rest.input, Shape({3, 10, 10}));
  EXPECT_EQ(rest.parameters[0].name, "conv2.weight");
  EXPECT_EQ(all.parameter_count, 4 * 78 + rest.parameter_count);
}

}  // namespace
}  // namespace tutti

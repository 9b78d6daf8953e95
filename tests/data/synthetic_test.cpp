#include "data/synthetic.h"

#include <cmath>

#include "tests/data/files.h"

namespace tutti {
namespace {

DataConfig synthetic_config(const char* kind) {
  DataConfig config(kind);
  set(config, "samples", 2000);
  set(config, "features", 6);
  try_set(config, "classes", 4);
  return config;
}

TEST(Synthetic, LinearTargetsFollowTheOptimum) {
  DataConfig config = synthetic_config("synthetic-linear");
  for (const double noise : {0.0, 0.5}) {
    set(config, "noise", noise);
    const Data data = load_data(config, 3, "");
    const std::vector<float> optimum =
        synthetic_optimum(config.source.get<SyntheticLinearData>(), 3);
    ASSERT_EQ(optimum.size(), 7u);
    const Batch batch = gather_all(*data.dataset);
    double sum = 0, squares = 0;
    for (size_t i = 0; i < batch.size(); ++i) {
      double residual = double{batch.targets[i]} - double{optimum[6]};
      for (size_t j = 0; j < 6; ++j)
        residual -= double{optimum[j]} * double{batch.features[6 * i + j]};
      sum += residual;
      squares += residual * residual;
    }
    EXPECT_NEAR(sum / 2000, 0, 0.05 * noise + 1e-6);
    EXPECT_NEAR(std::sqrt(squares / 2000), noise, 0.05 * noise + 1e-5);
  }
}

// A mean of 2,000 products has a deviation of at most sqrt(2 / 2000); five of them are 0.16.
TEST(Synthetic, FeaturesOfAGroupAreCorrelatedAndSomeMatter) {
  DataConfig config = synthetic_config("synthetic-linear");
  set(config, "correlation", 0.8);
  set(config, "group", 3);
  set(config, "informative", 2);
  const Batch batch = gather_all(*load_data(config, 3, "").dataset);
  for (size_t a = 0; a < 6; ++a)
    for (size_t b = 0; b < 6; ++b) {
      double sum = 0;
      for (size_t i = 0; i < batch.size(); ++i)
        sum += double{batch.features[6 * i + a]} * double{batch.features[6 * i + b]};
      const double expected = a == b ? 1 : a / 3 == b / 3 ? 0.8 : 0;
      EXPECT_NEAR(sum / 2000, expected, 0.16) << a << " and " << b;
    }
  const std::vector<float> optimum = synthetic_optimum(config.source.get<SyntheticLinearData>(), 3);
  for (size_t j = 0; j < 6; ++j) EXPECT_EQ(optimum[j] != 0, j == 0 || j == 3) << j;
  EXPECT_NE(optimum[6], 0) << "the bias";
}

TEST(Synthetic, ClassesAreBalancedAndNearTheirCentre) {
  const Data data = load_data(synthetic_config("synthetic-classes"), 3, "");
  const Batch batch = gather_all(*data.dataset);
  std::vector<double> mean(4 * 6);
  std::vector<int> count(4);
  for (size_t i = 0; i < batch.size(); ++i) {
    const auto label = static_cast<size_t>(batch.labels[i]);
    ++count[label];
    for (size_t j = 0; j < 6; ++j) mean[6 * label + j] += double{batch.features[6 * i + j]} / 500;
  }
  EXPECT_EQ(count, (std::vector<int>{500, 500, 500, 500}));
  for (size_t i = 0; i < batch.size(); ++i)
    for (size_t j = 0; j < 6; ++j)
      EXPECT_NEAR(double{batch.features[6 * i + j]},
                  mean[6 * static_cast<size_t>(batch.labels[i]) + j], 0.6);
}

TEST(Synthetic, ASeedGivesTheSameDataAndAnotherGivesOther) {
  for (const char* kind : {"synthetic-linear", "synthetic-classes"}) {
    const DataConfig config = synthetic_config(kind);
    const Batch one = gather_all(*load_data(config, 3, "").dataset);
    EXPECT_EQ(one.features, gather_all(*load_data(config, 3, "").dataset).features);
    EXPECT_NE(one.features, gather_all(*load_data(config, 4, "").dataset).features);
  }
}

TEST(Synthetic, ALargerSetStartsWithTheSmaller) {
  for (const char* kind : {"synthetic-linear", "synthetic-classes"}) {
    DataConfig config = synthetic_config(kind);
    const Batch large = gather_all(*load_data(config, 3, "").dataset);
    set(config, "samples", 100);
    const Batch small = gather_all(*load_data(config, 3, "").dataset);
    EXPECT_TRUE(std::equal(small.features.begin(), small.features.end(), large.features.begin()));
  }
}

TEST(Synthetic, MoreThanFitsIsRefusedBeforeMemoryIsTaken) {
  DataConfig config = synthetic_config("synthetic-linear");
  set(config, "samples", int64_t{1} << 31);
  set(config, "features", int64_t{1} << 24);
  EXPECT_THROW(load_data(config, 1, ""), ConfigError);
}

}  // namespace
}  // namespace tutti

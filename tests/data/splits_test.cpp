#include <algorithm>

#include "tests/data/files.h"

namespace tutti {
namespace {

DataConfig splits_config(int64_t samples) {
  DataConfig config("synthetic-classes");
  set(config, "samples", samples);
  set(config, "features", 1);
  return config;
}

TEST(Splits, PartitionTheSamplesByTheirShares) {
  DataConfig config = splits_config(1000);
  config.validation = 0.25;
  config.test = 0.2;
  const Splits splits = load_data(config, 1, "").splits;
  EXPECT_EQ(splits.test.size(), 200u);
  EXPECT_EQ(splits.validation.size(), 200u);  // a quarter of the 800 that remain
  EXPECT_EQ(splits.train.size(), 600u);
  std::vector<uint32_t> all;
  for (const auto* split : {&splits.train, &splits.validation, &splits.test}) {
    EXPECT_TRUE(std::is_sorted(split->begin(), split->end()));
    all.insert(all.end(), split->begin(), split->end());
  }
  std::sort(all.begin(), all.end());
  for (uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(all[i], i);
}

TEST(Splits, AreTheSameForEverySeed) {
  const Splits one = load_data(splits_config(500), 1, "").splits;
  const Splits other = load_data(splits_config(500), 99, "").splits;
  EXPECT_EQ(one.train, other.train);
  EXPECT_EQ(one.validation, other.validation);
  EXPECT_EQ(one.test, other.test);
}

TEST(Splits, AreNotInTheOrderOfTheFile) {
  const Splits splits = load_data(splits_config(500), 1, "").splits;
  EXPECT_LT(splits.validation.front(), 100u);
  EXPECT_GT(splits.validation.back(), 400u);
}

TEST(Splits, ALimitAppliesToEachAndKeepsTheMembers) {
  DataConfig config = splits_config(500);
  const Splits all = load_data(config, 1, "").splits;
  config.limit = 20;
  const Splits few = load_data(config, 1, "").splits;
  EXPECT_EQ(few.train.size(), 20u);
  EXPECT_EQ(few.validation.size(), 20u);
  EXPECT_EQ(few.test.size(), 20u);
  EXPECT_TRUE(
      std::includes(all.train.begin(), all.train.end(), few.train.begin(), few.train.end()));
  EXPECT_TRUE(std::includes(all.test.begin(), all.test.end(), few.test.begin(), few.test.end()));
}

TEST(Splits, ASmallShareIsAtLeastOneSampleAndZeroIsNone) {
  DataConfig config = splits_config(5);
  config.validation = config.test = 0.01;
  Splits splits = load_data(config, 1, "").splits;
  EXPECT_EQ(splits.validation.size(), 1u);
  EXPECT_EQ(splits.test.size(), 1u);
  config.validation = config.test = 0;
  splits = load_data(config, 1, "").splits;
  EXPECT_EQ(splits.train.size(), 5u);
}

TEST(Splits, NothingLeftToTrainOnIsRefused) {
  DataConfig config = splits_config(5);
  config.validation = 1;
  EXPECT_THROW(load_data(config, 1, ""), ConfigError);
}

}  // namespace
}  // namespace tutti

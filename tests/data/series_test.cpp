#include "tests/data/files.h"

namespace tutti {
namespace {

DataConfig series_config(const std::string& path) {
  DataConfig config("series");
  set(config, "path", path);
  set(config, "label", "b");
  set(config, "context", 2);
  return config;
}

const std::string kText = "day,a,b\nmon,1,10\ntue,2,20\nwed,3,30\nthu,4,40\nfri,5,50\n";

TEST(Series, RowsBeforePredictTheNext) {
  const TemporaryDirectory directory;
  const Batch batch = gather_all(*load_all(series_config(directory.write("t", kText))).dataset);
  EXPECT_EQ(batch.features, (std::vector<float>{10, 20, 20, 30, 30, 40}));
  EXPECT_EQ(batch.targets, (std::vector<float>{30, 40, 50}));
}

TEST(Series, SeveralColumnsCanPredictFurtherAhead) {
  const TemporaryDirectory directory;
  DataConfig config = series_config(directory.write("t", kText));
  set(config, "columns", "b, a");
  set(config, "horizon", 2);
  const Batch batch = gather_all(*load_all(config).dataset);
  EXPECT_EQ(batch.features, (std::vector<float>{10, 1, 20, 2, 20, 2, 30, 3}));
  EXPECT_EQ(batch.targets, (std::vector<float>{40, 50}));
}

TEST(Series, TheFutureIsForTesting) {
  const TemporaryDirectory directory;
  std::string text = "b\n";
  for (int i = 0; i < 102; ++i) text += std::to_string(i) + "\n";
  DataConfig config = series_config(directory.write("t", text));
  config.validation = config.test = 0.2;
  const Splits splits = load_data(config, 1, "").splits;
  EXPECT_EQ(splits.train.back(), 63U);
  EXPECT_EQ(splits.validation.front(), 64U);
  EXPECT_EQ(splits.test.front(), 80U);
  EXPECT_EQ(splits.test.back(), 99U);
}

TEST(Series, MistakesAreNamed) {
  const TemporaryDirectory directory;
  DataConfig config = series_config(directory.write("t", kText));
  set(config, "label", "c");
  EXPECT_THROW(load_all(config), ConfigError);
  set(config, "label", "");
  EXPECT_THROW(load_all(config), ConfigError);
  set(config, "label", "b");
  set(config, "columns", "a,x");
  EXPECT_THROW(load_all(config), ConfigError);
  set(config, "columns", "day");
  expect_data_error(config, {"t, line 2", "'day'", "'mon'"});
  set(config, "columns", "");
  set(config, "context", 5);
  expect_data_error(config, {"5 rows are too few", "task.data.context"});
  expect_data_error(series_config(directory.write("t", "a,b\n1,2\n3\n")), {"line 3", "1 fields"});
}

}  // namespace
}  // namespace tutti

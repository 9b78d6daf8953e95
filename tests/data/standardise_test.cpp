#include "data/standardise.h"

#include <cmath>

#include "data/prediction.h"
#include "tests/data/files.h"

namespace tutti {
namespace {

// The third feature never changes; the second is large and varies little.
std::string table(int rows) {
  std::string text;
  for (int i = 0; i < rows; ++i)
    text += std::to_string(i) + "," + std::to_string(1000000 + i % 2) + ",5," +
            (i % 3 == 0 ? "x" : "y") + "\n";
  return text;
}

DataConfig standardise_config(const std::string& path) {
  DataConfig config("csv");
  set(config, "path", path);
  set(config, "standardise", true);
  config.validation = config.test = 0.25;
  return config;
}

TEST(Standardise, TrainingFeaturesGetMeanZeroAndDeviationOne) {
  const TemporaryDirectory directory;
  const Data data = load_data(standardise_config(directory.write("t.csv", table(400))), 1, "");
  Batch batch;
  data.dataset->gather(data.splits.train, batch);
  for (size_t column = 0; column < 3; ++column) {
    double sum = 0, squares = 0;
    for (size_t i = column; i < batch.features.size(); i += 3) {
      sum += static_cast<double>(batch.features[i]);
      squares += std::pow(static_cast<double>(batch.features[i]), 2);
    }
    const auto count = static_cast<double>(batch.size());
    EXPECT_NEAR(sum / count, 0, 1e-5) << column;
    EXPECT_NEAR(squares / count, column == 2 ? 0 : 1, 1e-5) << column;
  }
}

// What is tested on must not have a say: a test sample that is far out changes nothing.
TEST(Standardise, NothingLeaksFromTheOtherSplits) {
  const TemporaryDirectory directory;
  const Data plain = load_data(standardise_config(directory.write("t.csv", table(40))), 1, "");
  const uint32_t outlier = plain.splits.test.front();
  std::string text = table(40);
  size_t line = 0;
  for (uint32_t i = 0; i < outlier; ++i) line = text.find('\n', line) + 1;
  text.insert(line, "99999");
  const Data changed = load_data(standardise_config(directory.write("u.csv", text)), 1, "");
  Batch before, after;
  plain.dataset->gather(plain.splits.train, before);
  changed.dataset->gather(changed.splits.train, after);
  EXPECT_EQ(before.features, after.features);
  changed.dataset->gather(changed.splits.test, after);
  EXPECT_GT(after.features[0], 1000);
}

// Numbers in a file have units, so they are standardised unless a job says otherwise. Sparse data
// stays sparse.
TEST(Standardise, IsTheDefaultOfDenseFiles) {
  const TemporaryDirectory directory;
  DataConfig config = standardise_config(directory.write("t.csv", table(40)));
  const Batch wanted = gather_all(*load_data(config, 1, "").dataset);
  DataConfig unset("csv");
  set(unset, "path", path_of(config));
  unset.validation = unset.test = 0.25;
  EXPECT_EQ(gather_all(*load_data(unset, 1, "").dataset).features, wanted.features);
  set(config, "standardise", false);
  EXPECT_EQ(gather_all(*load_data(config, 1, "").dataset).features[1], 1000000);
  config = DataConfig("libsvm");
  set(config, "path", directory.write("t.svm", "1 1:3 2:5\n2 1:1\n1 1:9\n2 2:4\n"));
  EXPECT_NE(load_data(config, 1, "").dataset->with_sparse_rows(), nullptr);
}

TEST(Standardise, SaysWhatItSaw) {
  const TemporaryDirectory directory;
  DataConfig config = standardise_config(directory.write("t.csv", table(400)));
  config.test = config.validation = 0;
  FeatureSpread spread = load_data(config, 1, "").spread.value();
  EXPECT_EQ(spread_text(spread), "3 numbers from 0 to 1e+06, standardised");
  EXPECT_NEAR(spread.ratio, 115.5 / 0.5, 1) << "a feature that never changes has no scale";
  EXPECT_FALSE(differ_in_scale(spread));
  set(config, "path", directory.write("u.csv", "0.001,54000,x\n0.002,10000,y\n0.003,20000,x\n"));
  EXPECT_FALSE(differ_in_scale(load_data(config, 1, "").spread.value())) << "not any more";
  set(config, "standardise", false);
  spread = load_data(config, 1, "").spread.value();
  EXPECT_EQ(spread_text(spread), "2 numbers from 0.001 to 54000, as they are in the file");
  EXPECT_TRUE(differ_in_scale(spread));
}

// A feature that few samples have is rare, not small.
TEST(Standardise, SparseFeaturesAreJudgedByTheirLargestValues) {
  const TemporaryDirectory directory;
  DataConfig config("libsvm");
  config.test = config.validation = 0;
  std::string rare = "1 1:1 2:1\n";
  for (int i = 0; i < 4000; ++i) rare += i % 2 ? "1 1:1\n" : "2 1:0.5\n";
  set(config, "path", directory.write("rare", rare));
  EXPECT_FALSE(differ_in_scale(load_data(config, 1, "").spread.value()));
  set(config, "path", directory.write("large", "1 1:1 2:5000\n2 1:0.5 2:10000\n"));
  EXPECT_TRUE(differ_in_scale(load_data(config, 1, "").spread.value()));
}

TEST(Standardise, PredictionsUseTheScalesOfTheTraining) {
  const TemporaryDirectory directory;
  const DataConfig config = standardise_config(directory.write("t.csv", table(40)));
  const Data data = load_data(config, 1, "");
  const PredictionData again =
      load_for_prediction(config, path_of(config), "", describe(config, *data.dataset));
  EXPECT_EQ(gather_all(*again.dataset).features, gather_all(*data.dataset).features);
}

}  // namespace
}  // namespace tutti

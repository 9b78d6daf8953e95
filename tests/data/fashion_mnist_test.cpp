#include <algorithm>
#include <cmath>

#include "tests/data/files.h"

namespace tutti {
namespace {

TEST(FashionMnist, ThePackageIsReadStandardisedAndSplit) {
  const Data data = load_data(DataConfig{}, 1, "");
  EXPECT_EQ(data.dataset->size(), 70000u);
  EXPECT_EQ(data.dataset->sample_shape(), (std::vector<int64_t>{1, 28, 28}));
  EXPECT_EQ(data.dataset->classes(), 10);
  EXPECT_EQ(data.dataset->class_names()[9], "Ankle boot");
  EXPECT_EQ(data.splits.train.size(), 55000u);
  EXPECT_EQ(data.splits.validation.size(), 5000u);
  EXPECT_EQ(data.splits.test.size(), 10000u);
  EXPECT_EQ(data.splits.test.front(), 60000u);
  EXPECT_EQ(data.splits.test.back(), 69999u);
  EXPECT_LT(data.splits.validation.back(), 60000u);
  EXPECT_LT(data.dataset->memory_bytes(), 60e6);  // bytes, not floats

  Batch batch;
  data.dataset->gather(data.splits.train, batch);
  double sum = 0, squares = 0;
  for (const float value : batch.features) {
    sum += double{value};
    squares += double{value} * double{value};
  }
  const auto count = static_cast<double>(batch.features.size());
  EXPECT_NEAR(sum / count, 0, 0.01);
  EXPECT_NEAR(squares / count, 1, 0.01);
  // All classes are in the training files equally often, so nearly so in a random part of them.
  std::vector<int> counts(10);
  for (const int32_t label : batch.labels) ++counts[static_cast<size_t>(label)];
  for (const int n : counts) EXPECT_NEAR(n, 5500, 130);
}

class FashionMnistFiles : public testing::Test {
 protected:
  void write(const std::string& part, uint32_t count, uint32_t width, char label) {
    directory_.write_gzip(part + "-images-idx3-ubyte.gz",
                          idx(8, {count, 2, width}, ramp(count * 2 * width)));
    directory_.write_gzip(part + "-labels-idx1-ubyte.gz",
                          idx(8, {count}, std::string(count, label)));
  }
  DataConfig config() {
    DataConfig config;
    set(config, "path", directory_.path());
    return config;
  }
  TemporaryDirectory directory_;
};

TEST_F(FashionMnistFiles, TheDirectoryIsASetting) {
  write("train", 24, 3, 1);
  write("t10k", 5, 3, 2);
  const Data data = load_data(config(), 1, "");
  EXPECT_EQ(data.splits.train.size(), 22u);
  EXPECT_EQ(data.splits.validation.size(), 2u);
  EXPECT_EQ(data.splits.test.size(), 5u);
  EXPECT_EQ(gather_all(*data.dataset).labels[24], 2);
}

TEST_F(FashionMnistFiles, AFolderWithoutTheFilesIsSaidWithTheRemedy) {
  expect_data_error(config(),
                    {directory_.path(), "task.data.path", "package dataset-fashion-mnist"});
}

TEST_F(FashionMnistFiles, FilesThatDoNotFitAreRefused) {
  write("train", 24, 3, 1);
  write("t10k", 5, 4, 2);
  expect_data_error(config(), {"differ in size"});
  write("t10k", 5, 3, 10);
  expect_data_error(config(), {"t10k-labels", "10 classes"});
}

}  // namespace
}  // namespace tutti

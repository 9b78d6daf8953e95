#include "tests/data/files.h"

namespace tutti {
namespace {

DataConfig text_config(const std::string& path, int64_t context) {
  DataConfig config("text");
  set(config, "path", path);
  set(config, "context", context);
  return config;
}

TEST(Text, TheContextPredictsTheNextCharacter) {
  const TemporaryDirectory directory;
  const std::string text = "abcabd\n";
  for (const std::string& path : {directory.write("t", text), directory.write_gzip("t.gz", text)}) {
    const Data data = load_all(text_config(path, 2));
    EXPECT_EQ(data.dataset->size(), 5u);
    EXPECT_EQ(data.dataset->classes(), 5);
    EXPECT_EQ(data.dataset->class_names(), (std::vector<std::string>{"\\x0a", "a", "b", "c", "d"}));
    EXPECT_EQ(data.dataset->sample_shape(), std::vector<int64_t>{10});
    const Batch batch = gather_all(*data.dataset);
    EXPECT_EQ(batch.labels, (std::vector<int32_t>{3, 1, 2, 4, 0}));
    const std::vector<float> first(batch.features.begin(), batch.features.begin() + 10);
    EXPECT_EQ(first, (std::vector<float>{0, 1, 0, 0, 0, 0, 0, 1, 0, 0}));
    float total = 0;
    for (const float value : batch.features) total += value;
    EXPECT_EQ(total, 10);  // one per sample and position
  }
}

// Neighbouring samples share characters, so a random split would test on what was trained on.
TEST(Text, SplitsAreContiguous) {
  const TemporaryDirectory directory;
  DataConfig config = text_config(directory.write("t", ramp(1008)), 8);
  config.validation = config.test = 0.1;
  const Splits splits = load_data(config, 1, "").splits;
  EXPECT_EQ(splits.train.size(), 810u);
  EXPECT_EQ(splits.train.back(), 809u);
  EXPECT_EQ(splits.validation.front(), 810u);
  EXPECT_EQ(splits.test.front(), 900u);
  EXPECT_EQ(splits.test.back(), 999u);
}

TEST(Text, ATextShorterThanTheContextIsRefused) {
  const TemporaryDirectory directory;
  expect_data_error(text_config(directory.write("t", "abc"), 8),
                    {"3 characters", "task.data.context"});
}

}  // namespace
}  // namespace tutti

#include "tests/data/files.h"

namespace tutti {
namespace {

DataConfig tokens_config(const std::string& path, int64_t context) {
  DataConfig config("tokens");
  set(config, "path", path);
  set(config, "context", context);
  return config;
}

TEST(Tokens, EachPositionIsAnsweredByTheCharacterAfterIt) {
  const TemporaryDirectory directory;
  const Data data = load_all(tokens_config(directory.write("t", "abcabdab"), 3));
  EXPECT_EQ(data.dataset->size(), 2U);  // the last two characters do not fill a window
  EXPECT_EQ(data.dataset->sample_shape(), std::vector<int64_t>{3});
  EXPECT_EQ(data.dataset->answers_per_sample(), 3);
  EXPECT_EQ(data.dataset->classes(), 4);
  const Batch batch = gather_all(*data.dataset);
  EXPECT_EQ(batch.features, (std::vector<float>{0, 1, 2, 0, 1, 3}));
  EXPECT_EQ(batch.labels, (std::vector<int32_t>{1, 2, 0, 1, 3, 0}));
}

TEST(Tokens, TheLastCharacterCanAnswer) {
  const TemporaryDirectory directory;
  EXPECT_EQ(load_all(tokens_config(directory.write("t", "abcabda"), 3)).dataset->size(), 2U);
  EXPECT_EQ(load_all(tokens_config(directory.write("t", "abcabd"), 3)).dataset->size(), 1U);
}

TEST(Tokens, SplitsAreContiguousBlocksOfTheText) {
  const TemporaryDirectory directory;
  DataConfig config = tokens_config(directory.write("t", ramp(1001)), 10);
  config.validation = config.test = 0.1;
  const Splits splits = load_data(config, 1, "").splits;
  EXPECT_EQ(splits.train.size(), 81U);
  EXPECT_EQ(splits.train.back(), 80U);
  EXPECT_EQ(splits.validation.front(), 81U);
  EXPECT_EQ(splits.test.front(), 90U);
}

TEST(Tokens, AShortTextIsRefused) {
  const TemporaryDirectory directory;
  expect_data_error(tokens_config(directory.write("t", "abc"), 8), {"3 characters", "context"});
}

}  // namespace
}  // namespace tutti

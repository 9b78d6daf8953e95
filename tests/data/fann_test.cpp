#include "tests/data/files.h"

namespace tutti {
namespace {

DataConfig fann_config(const std::string& path, bool regression = false) {
  DataConfig config("fann");
  set(config, "path", path);
  set(config, "regression", regression);
  return config;
}

TEST(Fann, TheLargestOutputIsTheClass) {
  const TemporaryDirectory directory;
  const Data data =
      load_all(fann_config(directory.write("t", "3 2 3\n1 2\n0 0 1\n3 4\n1 0 0\n5 6 0 1 0")));
  EXPECT_EQ(data.dataset->sample_shape(), std::vector<int64_t>{2});
  const Batch batch = gather_all(*data.dataset);
  EXPECT_EQ(batch.labels, (std::vector<int32_t>{2, 0, 1}));
  EXPECT_EQ(batch.features, (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(Fann, OneOutputIsTheClassOrTheNumber) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("t", "2 1 1\n7\n0.5\n8\n-1\n");
  EXPECT_EQ(load_all(fann_config(path)).dataset->class_names(),
            (std::vector<std::string>{"-1", "0.5"}));
  EXPECT_EQ(gather_all(*load_all(fann_config(path, true)).dataset).targets,
            (std::vector<float>{0.5F, -1}));
}

TEST(Fann, OneOfSeveralNumbersCanBeChosen) {
  const TemporaryDirectory directory;
  DataConfig config = fann_config(directory.write("t", "2 1 2\n7\n1 2\n8\n3 4\n"), true);
  EXPECT_EQ(gather_all(*load_all(config).dataset).targets, (std::vector<float>{1, 3}));
  set(config, "label", "1");
  EXPECT_EQ(gather_all(*load_all(config).dataset).targets, (std::vector<float>{2, 4}));
  set(config, "label", "2");
  EXPECT_THROW(load_all(config), ConfigError);
}

TEST(Fann, ATestFileIsATestSet) {
  const TemporaryDirectory directory;
  DataConfig config = fann_config(directory.write("train", "2 1 1\n1\n0\n2\n1\n"));
  set(config, "test_path", directory.write("test", "1 1 1\n9\n1\n"));
  EXPECT_EQ(load_all(config).splits.test, std::vector<uint32_t>{2});
  set(config, "test_path", directory.write("test", "1 2 1\n9 9\n1\n"));
  expect_data_error(config, {"test", "other numbers of inputs"});
}

TEST(Fann, PromisesThatTheFileDoesNotKeepAreRefused) {
  const TemporaryDirectory directory;
  const auto refused = [&](const std::string& text, const std::vector<std::string>& parts) {
    expect_data_error(fann_config(directory.write("t", text)), parts);
  };
  refused("", {"t: the file is empty"});
  refused("\n", {"t: the file ends"});
  refused("2 1", {"number of outputs"});
  refused("2 1 1\n1\n0\n2222\n", {"truncated"});
  refused("1 1 1\n1\n0\n2\n", {"more than the 1 samples"});
  refused("900000000 900000000 1\n1 2 3\n", {"more values than the file can hold"});
  refused("1.5 1 1\n1 1", {"numbers of samples"});
  refused("-1 1 1\n1 1", {"numbers of samples"});
  refused("1 1 1\nx 1", {"t, line 2", "'x'"});
}

}  // namespace
}  // namespace tutti

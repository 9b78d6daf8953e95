#include "tests/data/files.h"

namespace tutti {
namespace {

DataConfig libsvm_config(const std::string& path, bool regression = false) {
  DataConfig config("libsvm");
  set(config, "path", path);
  set(config, "regression", regression);
  return config;
}

TEST(Libsvm, AbsentFeaturesAreZeroAndLabelsAreNumberedInOrder) {
  const TemporaryDirectory directory;
  const std::string text = "+1 1:0.5 3:-2 # a remark\n\n-1 2:1e1\r\n1 \t4:7\n-1\n";
  for (const std::string& path : {directory.write("t", text), directory.write_gzip("t.gz", text)}) {
    const Data data = load_all(libsvm_config(path));
    EXPECT_EQ(data.dataset->sample_shape(), std::vector<int64_t>{4});
    EXPECT_EQ(data.dataset->class_names(), (std::vector<std::string>{"-1", "1"}));
    const Batch batch = gather_all(*data.dataset);
    EXPECT_EQ(batch.labels, (std::vector<int32_t>{1, 0, 1, 0}));
    EXPECT_EQ(batch.features,
              (std::vector<float>{0.5F, 0, -2, 0, 0, 10, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0}));
  }
}

TEST(Libsvm, PredictsNumbersWhereAsked) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("t", "0.25 1:1\n-3e-2 1:2\n");
  EXPECT_EQ(gather_all(*load_all(libsvm_config(path, true)).dataset).targets,
            (std::vector<float>{0.25F, -0.03F}));
  expect_data_error(libsvm_config(path), {"t, line 1", "0.25", "task.data.regression"});
}

TEST(Libsvm, ATestFileIsATestSetInTheSameFeatures) {
  const TemporaryDirectory directory;
  DataConfig config = libsvm_config(directory.write("train", "0 1:1\n1 2:1\n2 1:3\n"));
  set(config, "test_path", directory.write("test", "2 5:1\n"));
  const Data data = load_all(config);
  EXPECT_EQ(data.splits.test, std::vector<uint32_t>{3});
  EXPECT_EQ(data.splits.train.size(), 3U);
  EXPECT_EQ(data.dataset->sample_shape(), std::vector<int64_t>{5});
  EXPECT_EQ(data.dataset->classes(), 3);
}

TEST(Libsvm, ErrorsNameFileAndLine) {
  const TemporaryDirectory directory;
  const auto refused = [&](const std::string& text, const std::vector<std::string>& parts) {
    expect_data_error(libsvm_config(directory.write("t", "1 1:1\n" + text)), parts);
  };
  refused("x 1:1\n", {"t, line 2", "'x'", "not a finite number"});
  refused("1 1\n", {"t, line 2", "index:value"});
  refused("1 0:1\n", {"t, line 2", "index from 1"});
  refused("1 1.5:1\n", {"index:value"});
  refused("1 qid:3 1:1\n", {"qid:3"});
  refused("1 2:nan\n", {"not a finite number"});
  refused("1 2:\n", {"not a finite number"});
  refused("1 2:1 2:3\n", {"index 2 follows index 2", "ascend"});
  refused("1 9000000:1\n", {"t, line 2", "index 9000000", "plausible"});
  DataConfig keyed = libsvm_config(directory.write("t", "1 4:1\n1 1099511627776:1\n"));
  set(keyed, "keys", (int64_t{1} << 40) - 1);
  expect_data_error(keyed, {"t, line 2", "1099511627775"});
  expect_data_error(libsvm_config(directory.write("t", "# nothing\n")), {"no rows"});
  expect_data_error(libsvm_config("/nowhere"), {"/nowhere"});
}

}  // namespace
}  // namespace tutti

#include "tests/data/files.h"

namespace tutti {
namespace {

DataConfig idx_config(const std::string& images, const std::string& labels) {
  DataConfig config("idx");
  set(config, "path", images);
  set(config, "labels_path", labels);
  return config;
}

TEST(Idx, ImagesBecomeFractionsInOrder) {
  const TemporaryDirectory directory;
  for (const bool gzip : {false, true}) {
    const std::string images = idx(8, {4, 2, 3}, ramp(24)), labels = idx(8, {4}, {2, 0, 1, 2});
    const DataConfig config =
        gzip
            ? idx_config(directory.write_gzip("i.gz", images), directory.write_gzip("l.gz", labels))
            : idx_config(directory.write("i", images), directory.write("l", labels));
    const Data data = load_all(config);
    EXPECT_EQ(data.dataset->size(), 4u);
    EXPECT_EQ(data.dataset->sample_shape(), (std::vector<int64_t>{1, 2, 3}));
    EXPECT_EQ(data.dataset->classes(), 3);
    EXPECT_EQ(data.dataset->class_names(), (std::vector<std::string>{"0", "1", "2"}));
    const Batch batch = gather_all(*data.dataset);
    EXPECT_EQ(batch.labels, (std::vector<int32_t>{2, 0, 1, 2}));
    for (size_t i = 0; i < 24; ++i)
      EXPECT_FLOAT_EQ(batch.features[i], static_cast<float>(i * 7 % 256) / 255);
  }
}

TEST(Idx, GatherTakesAnyOrderAndRepeats) {
  const TemporaryDirectory directory;
  const Data data = load_all(idx_config(directory.write("i", idx(8, {4, 5}, ramp(20))),
                                        directory.write("l", idx(8, {4}, {0, 1, 2, 3}))));
  Batch batch;
  batch.step = 9;
  data.dataset->gather(std::vector<uint32_t>{3, 0, 3}, batch);
  EXPECT_EQ(batch.size(), 3u);
  EXPECT_EQ(batch.labels, (std::vector<int32_t>{3, 0, 3}));
  EXPECT_EQ(batch.samples, (std::vector<uint32_t>{3, 0, 3}));
  EXPECT_TRUE(batch.targets.empty());
  EXPECT_EQ(batch.features.size(), 15u);
  EXPECT_FLOAT_EQ(batch.features[0], 105.0f / 255);
  EXPECT_FLOAT_EQ(batch.features[5], 0);
  EXPECT_EQ(batch.step, 9u);
  data.dataset->gather({}, batch);
  EXPECT_EQ(batch.size(), 0u);
  EXPECT_TRUE(batch.features.empty());
  EXPECT_THROW(data.dataset->gather(std::vector<uint32_t>{4}, batch), std::logic_error);
}

TEST(Idx, FloatsAreReadBigEndian) {
  const TemporaryDirectory directory;
  const std::string one = {0x3f, static_cast<char>(0x80), 0, 0};
  const std::string minus_two = {static_cast<char>(0xc0), 0, 0, 0};
  const Data data = load_all(idx_config(directory.write("i", idx(13, {2, 1}, one + minus_two)),
                                        directory.write("l", idx(8, {2}, {0, 1}))));
  EXPECT_EQ(gather_all(*data.dataset).features, (std::vector<float>{1, -2}));
}

TEST(Idx, AMessageNamesTheFileAndWhatIsWrong) {
  const TemporaryDirectory directory;
  const std::string labels = directory.write("labels", idx(8, {4}, {0, 1, 2, 3}));
  const auto expect = [&](const std::string& content, const std::vector<std::string>& parts) {
    expect_data_error(idx_config(directory.write("images", content), labels), parts);
  };
  expect(idx(8, {4, 2}, ramp(7)), {"images", "promises 8 bytes of values but there are 7"});
  expect(idx(8, {4, 200}, ramp(7)), {"images", "more values than the file can hold"});
  expect(idx(8, {4, 2}, ramp(9)), {"images", "more than the 8 bytes"});
  expect(idx(8, {5, 2}, ramp(10)), {"labels", "4 labels", "5 samples"});
  expect(idx(8, {4, 0}, ""), {"dimension 1 is empty"});
  expect(idx(11, {4, 2}, ramp(16)), {"type 0x0b"});
  expect("hello, world", {"IDX magic"});
  expect(std::string("\0\0", 2), {"header is cut off"});
  expect(std::string("\0\0\x08\x02\0\0", 6), {"header is cut off"});
  expect("", {"empty"});
  expect(idx(8, {4294967295u, 4294967295u, 4294967295u}, ramp(64)), {"more values"});
  expect(idx(13, {4, 1}, std::string("\0\0\0\0\0\0\0\0\0\0\0\0\x7f\x80\0\0", 16)),
         {"value 3", "finite"});
}

TEST(Idx, MissingFilesAndSettingsAreNamed) {
  const TemporaryDirectory directory;
  expect_data_error(idx_config(directory.path() + "/none", "x"), {"none", "no such file"});
  expect_data_error(idx_config(directory.path(), "x"), {"not a file"});
  const std::string images = directory.write("i", idx(8, {1, 1}, "a"));
  EXPECT_THROW(load_all(idx_config(images, "")), ConfigError);
  EXPECT_THROW(load_all(idx_config("", "")), ConfigError);
}

TEST(Idx, AGzipNameWithOtherContentIsRefused) {
  const TemporaryDirectory directory;
  expect_data_error(idx_config(directory.write("i.gz", idx(8, {1, 1}, "a")), "x"), {"gzip"});
}

}  // namespace
}  // namespace tutti

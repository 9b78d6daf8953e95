#include <png.h>

#include <filesystem>

#include "data/paths.h"
#include "data/png_sheet.h"
#include "tests/data/files.h"

namespace tutti {
namespace {

std::string write_png(const TemporaryDirectory& directory, const std::string& name, uint32_t width,
                      uint32_t height, const std::vector<uint8_t>& pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = PNG_FORMAT_RGB;
  const std::string path = directory.path() + "/" + name;
  EXPECT_NE(png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, nullptr), 0);
  return path;
}

TEST(PngSheet, GivesThePixels) {
  const TemporaryDirectory directory;
  const std::vector<uint8_t> pixels = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  EXPECT_EQ(read_png_sheet(write_png(directory, "a.png", 2, 2, pixels), 2, 2), pixels);
}

TEST(PngSheet, RefusesOtherSizesAndDamage) {
  const TemporaryDirectory directory;
  std::vector<uint8_t> pixels(30 * 40 * 3);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * i * 7);
  const std::string path = write_png(directory, "a.png", 30, 40, pixels);
  EXPECT_THROW(read_png_sheet(path, 40, 30), DataError);
  const std::string content = read_all(path);
  for (size_t size = 0; size < content.size() - 20; size += 97)
    EXPECT_THROW(read_png_sheet(directory.write("b.png", content.substr(0, size)), 30, 40),
                 DataError)
        << size;
  for (size_t i = 0; i < content.size() - 16; i += 41) {  // every chunk has a checksum
    std::string damaged = content;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    try {
      read_png_sheet(directory.write("b.png", damaged), 30, 40);
    } catch (const DataError&) {
    }
  }
  EXPECT_THROW(read_png_sheet("/nowhere.png", 1, 1), DataError);
}

TEST(Cifar10, NamesTheScriptWhenItIsNotThere) {
  const TemporaryDirectory directory;
  DataConfig config("cifar10");
  set(config, "path", directory.path());
  expect_data_error(config, {"train_lables.json", "./scripts/fetch-cifar10"});
  directory.write("train_lables.json", "[1,2,3]");
  expect_data_error(config, {"test_lables.json", "./scripts/fetch-cifar10"});
  for (const std::string& file : data_files(config, ""))
    directory.write(std::filesystem::path(file).filename().string(), "[1,2,3]");
  expect_data_error(config, {"3 labels for 50000 images"});
  directory.write("train_lables.json", "{\"a\":1}");
  expect_data_error(config, {"not a list of labels"});
}

// Decoding 60,000 images takes some seconds, so all is checked in one test.
TEST(Cifar10, HasItsImagesAndItsOwnTestSet) {
  if (!std::filesystem::exists(cache_directory() + "/cifar10/test_batch.png"))
    GTEST_SKIP() << "CIFAR-10 is not here: run ./scripts/fetch-cifar10";
  DataConfig config("cifar10");
  const Data data = load_all(config);
  EXPECT_EQ(data.dataset->size(), 60000U);
  EXPECT_EQ(data.dataset->sample_shape(), (std::vector<int64_t>{3, 32, 32}));
  EXPECT_EQ(data.splits.test.size(), 10000U);
  EXPECT_EQ(data.splits.test.front(), 50000U);
  std::vector<uint32_t> samples;
  for (uint32_t i = 0; i < 50000; i += 50) samples.push_back(i);
  Batch batch;
  data.dataset->gather(samples, batch);
  EXPECT_EQ(batch.labels[0], 6);  // a frog
  double sum = 0, squares = 0;
  for (const float value : batch.features) {
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  const auto count = static_cast<double>(batch.features.size());
  // A thousand images of which each has a brightness of its own: good to a few percent.
  EXPECT_NEAR(sum / count, 0, 0.05);
  EXPECT_NEAR(squares / count, 1, 0.05);
}

TEST(Paths, HomeAndBaseDirectory) {
  EXPECT_EQ(complete_path("", "/base"), "");
  EXPECT_EQ(complete_path("a/../b", "/base"), "/base/b");
  EXPECT_EQ(complete_path("/a", "/base"), "/a");
  EXPECT_EQ(complete_path("~/.cache/tutti", "/base"), cache_directory());
}

}  // namespace
}  // namespace tutti

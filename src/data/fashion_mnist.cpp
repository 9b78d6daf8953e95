// Fashion-MNIST (Xiao, Rasul and Vollgraf, arXiv:1708.07747): 28x28 grey images of ten kinds of
// clothing, 60,000 to train on and 10,000 to test on, as the Debian package
// dataset-fashion-mnist installs them. One data set: samples 0 to 59,999 are the training file's,
// the others the test file's.
#include "data/fashion_mnist.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "data/idx.h"
#include "data/prediction.h"

namespace tutti {
namespace {

constexpr const char* kPackageDirectory = "/usr/share/datasets/fashion-mnist";
// Of the training images, in units of the brightest pixel: standardised inputs learn faster.
constexpr double kFashionMean = 0.2860;
constexpr double kFashionDeviation = 0.3530;
constexpr int64_t kFashionClasses = 10;

const std::vector<std::string> kFashionNames = {"T-shirt/top", "Trouser",   "Pullover", "Dress",
                                                "Coat",        "Sandal",    "Shirt",    "Sneaker",
                                                "Bag",         "Ankle boot"};

std::string file_of(const std::filesystem::path& directory, const std::string& prefix,
                    const char* what) {
  return (directory / (prefix + "-" + what + "-ubyte.gz")).string();
}

struct Part {
  IdxArray images;
  std::vector<int32_t> labels;
};

Part read_part(const std::filesystem::path& directory, const std::string& prefix) {
  const std::string images = file_of(directory, prefix, "images-idx3");
  const std::string labels = file_of(directory, prefix, "labels-idx1");
  for (const std::string& file : {images, labels})
    if (!std::filesystem::exists(file))
      throw DataError(fmt::format(
          "{}: there is no such file; {}", file,
          directory == kPackageDirectory
              ? "install Fashion-MNIST with `apt-get install dataset-fashion-mnist`, or run "
                "./scripts/setup"
              : "task.data.path must be the folder of the four files of Fashion-MNIST; leave it "
                "out to use those of the package dataset-fashion-mnist"));
  Part part{read_idx_array(images), {}};
  if (part.images.type != IdxType::kByte || part.images.extents.size() != 3)
    throw DataError(
        fmt::format("{}: this does not hold grey images, one byte per pixel; install "
                    "the package dataset-fashion-mnist again",
                    images));
  part.labels = read_idx_labels(labels, part.images.extents[0]);
  if (*std::max_element(part.labels.begin(), part.labels.end()) >= kFashionClasses)
    throw DataError(
        fmt::format("{}: a label is not one of the {} classes; install the package "
                    "dataset-fashion-mnist again",
                    labels, kFashionClasses));
  return part;
}

}  // namespace

void FashionMnistData::visit(Visitor& v) {
  v.field("path", path, "directory of its four files; empty: where the Debian package puts them");
}

Scaling FashionMnistData::byte_scaling() const {
  return {static_cast<float>(1 / (255 * kFashionDeviation)),
          static_cast<float>(-kFashionMean / kFashionDeviation)};
}

std::vector<std::string> FashionMnistData::folder_files() const {
  const std::string folder = path.empty() ? kPackageDirectory : path;
  std::vector<std::string> files;
  for (const char* prefix : {"train", "t10k"})
    for (const char* what : {"images-idx3", "labels-idx1"})
      files.push_back(file_of(folder, prefix, what));
  return files;
}

Source FashionMnistData::read(uint64_t) const {
  const std::string directory = path.empty() ? kPackageDirectory : path;
  Part train = read_part(directory, "train");
  const Part test = read_part(directory, "t10k");
  if (!std::equal(train.images.extents.begin() + 1, train.images.extents.end(),
                  test.images.extents.begin() + 1))
    throw DataError(
        fmt::format("{}: training and test images differ in size; install the package "
                    "dataset-fashion-mnist again",
                    directory));
  const size_t test_from = train.labels.size();
  train.images.bytes.insert(train.images.bytes.end(), test.images.bytes.begin(),
                            test.images.bytes.end());
  train.labels.insert(train.labels.end(), test.labels.begin(), test.labels.end());
  Answers answers;
  answers.classes = kFashionClasses;
  answers.labels = std::move(train.labels);
  answers.names = kFashionNames;
  return {make_byte_table(idx_sample_shape(train.images), std::move(train.images.bytes),
                          byte_scaling(), std::move(answers)),
          test_from};
}

PredictionData FashionMnistData::read_like(const DataDescription& trained_on,
                                           const std::string& images,
                                           const std::string& labels) const {
  return read_images_like(trained_on, images, labels);
}

}  // namespace tutti

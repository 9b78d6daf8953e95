#include "data/idx.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "core/error.h"
#include "data/common_keys.h"
#include "data/input_file.h"
#include "data/prediction.h"

namespace tutti {
namespace {

uint32_t big_endian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 |
         uint32_t{bytes[3]};
}

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw DataError(
      fmt::format("{}: {}; is it an IDX file, and was it fetched completely?", path, what));
}

IdxArray read_header(InputFile& file) {
  std::array<uint8_t, 4> magic{};
  if (file.read(magic) != magic.size()) fail(file.path(), "the header is cut off");
  if (magic[0] != 0 || magic[1] != 0) fail(file.path(), "it does not start with the IDX magic");
  if (magic[2] != uint8_t(IdxType::kByte) && magic[2] != uint8_t(IdxType::kFloat))
    fail(file.path(),
         fmt::format("values of type 0x{:02x} are not supported, only unsigned bytes (0x08) and "
                     "floats (0x0d)",
                     magic[2]));
  if (magic[3] < 1 || magic[3] > 4)
    fail(file.path(), fmt::format("it has {} dimensions, not 1 to 4", magic[3]));
  IdxArray array;
  array.type = static_cast<IdxType>(magic[2]);
  for (int i = 0; i < magic[3]; ++i) {
    std::array<uint8_t, 4> extent{};
    if (file.read(extent) != extent.size()) fail(file.path(), "the header is cut off");
    array.extents.push_back(big_endian(extent.data()));
    if (array.extents.back() == 0) fail(file.path(), fmt::format("dimension {} is empty", i));
  }
  return array;
}

// Refuses a size that cannot be in the file before any memory is taken for it. Checked by division
// at every factor, so that the product cannot overflow.
uint64_t payload_bytes(const IdxArray& array, const InputFile& file) {
  uint64_t size = array.type == IdxType::kFloat ? 4 : 1;
  for (const int64_t extent : array.extents) {
    if (static_cast<uint64_t>(extent) > file.most_bytes() / size)
      fail(file.path(), "the header promises more values than the file can hold");
    size *= static_cast<uint64_t>(extent);
  }
  return size;
}

Answers answers_from(std::vector<int32_t> labels) {
  Answers answers;
  answers.classes = 1 + *std::max_element(labels.begin(), labels.end());
  answers.labels = std::move(labels);
  return answers;
}

}  // namespace

IdxArray read_idx_array(const std::string& path) {
  InputFile file(path);
  IdxArray array = read_header(file);
  const uint64_t size = payload_bytes(array, file);
  array.bytes = file.read_up_to(size);
  if (array.bytes.size() != size)
    fail(path, fmt::format("the header promises {} bytes of values but there are {}", size,
                           array.bytes.size()));
  // Reading on to the end also makes zlib compare the checksum.
  std::array<uint8_t, 1> more{};
  if (file.read(more) != 0)
    fail(path, fmt::format("there is more than the {} bytes that the header promises", size));
  return array;
}

std::vector<int32_t> read_idx_labels(const std::string& path, int64_t count) {
  const IdxArray array = read_idx_array(path);
  if (array.type != IdxType::kByte || array.extents.size() != 1)
    fail(path, "labels must be one byte per sample, in one dimension");
  if (array.extents[0] != count)
    throw DataError(
        fmt::format("{}: holds {} labels, but there are {} samples; the two files do "
                    "not belong together",
                    path, array.extents[0], count));
  return {array.bytes.begin(), array.bytes.end()};
}

std::vector<int64_t> idx_sample_shape(const IdxArray& array) {
  std::vector<int64_t> shape(array.extents.begin() + 1, array.extents.end());
  if (shape.empty()) shape = {1};
  if (shape.size() == 2) shape.insert(shape.begin(), 1);
  return shape;
}

std::shared_ptr<const Dataset> make_idx_table(const std::string& path, IdxArray array,
                                              Scaling scaling, Answers answers) {
  std::vector<int64_t> shape = idx_sample_shape(array);
  if (array.type == IdxType::kByte)
    return make_byte_table(std::move(shape), std::move(array.bytes), scaling, std::move(answers));
  std::vector<float> features(array.bytes.size() / 4);
  for (size_t i = 0; i < features.size(); ++i) {
    features[i] = std::bit_cast<float>(big_endian(array.bytes.data() + 4 * i));
    if (!std::isfinite(features[i])) fail(path, fmt::format("value {} is not a finite number", i));
  }
  return make_table(std::move(shape), std::move(features), std::move(answers));
}

PredictionData read_images_like(const DataDescription& trained_on, const std::string& path,
                                const std::string& labels_path) {
  IdxArray array = read_idx_array(path);
  if (idx_sample_shape(array) != trained_on.sample_shape)
    throw DataError(
        fmt::format("{}: its samples have another shape than those that the model was "
                    "trained on",
                    path));
  Answers answers = no_answers(trained_on, static_cast<size_t>(array.extents[0]));
  if (!labels_path.empty()) {
    answers.labels = read_idx_labels(labels_path, array.extents[0]);
    for (const int32_t label : answers.labels)
      if (label >= answers.classes)
        throw DataError(
            fmt::format("{}: label {} is not one of the {} classes that the model was "
                        "trained on",
                        labels_path, label, answers.classes));
  }
  return {make_idx_table(path, std::move(array), trained_on.bytes, std::move(answers)),
          !labels_path.empty()};
}

void IdxData::visit(Visitor& v) {
  visit_path(v, path);
  v.field("labels_path", labels_path, "the file of labels");
}

Source IdxData::read(uint64_t) const {
  if (labels_path.empty())
    throw ConfigError("task.data.labels_path",
                      "task.data.labels_path is missing: idx data needs the file of labels too");
  IdxArray array = read_idx_array(path);
  Answers answers = answers_from(read_idx_labels(labels_path, array.extents[0]));
  const size_t count = answers.size();
  return {make_idx_table(path, std::move(array), byte_scaling(), std::move(answers)), count};
}

PredictionData IdxData::read_like(const DataDescription& trained_on, const std::string& images,
                                  const std::string& labels) const {
  return read_images_like(trained_on, images, labels);
}

}  // namespace tutti

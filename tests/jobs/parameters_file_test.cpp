// Parameters on disk: safetensors that come back bit by bit, and damaged ones that are refused.
#include "jobs/parameters_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/random.h"
#include "jobs/run_folder.h"
#include "models/lenet.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;

// Two convolutions, so that the order in memory is not that of the file.
Architecture lenet() {
  LenetModel lenet;
  lenet.channels = {2, 3};
  lenet.hidden = {4};
  return lenet.make({1, 16, 16}, 3);
}

std::vector<float> random_parameters(size_t count) {
  Random random(9, Stream::kTest);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.uniform() - 0.5);
  return values;
}

class ParametersFile : public testing::Test {
 protected:
  ParametersFile() : values_(random_parameters(architecture_.parameter_count)) {
    values_[0] = std::numeric_limits<float>::denorm_min();
    values_[1] = -0.0f;
    values_[2] = std::numeric_limits<float>::infinity();
    save_parameters(path(), architecture_, values_);
    whole_ = read_file(path());
  }
  std::string path() const { return folder_ / "parameters.safetensors"; }
  // True when the content can be loaded, false when it is refused. Anything else fails the test.
  bool loads(const std::string& content) {
    write_file(path(), content);
    std::vector<float> read(architecture_.parameter_count);
    try {
      load_parameters(path(), architecture_, read);
      return true;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find(path()), std::string::npos) << error.what();
      return false;
    }
  }
  const Parameter& parameter(const std::string& name) const {
    for (const Parameter& each : architecture_.parameters)
      if (each.name == name) return each;
    throw DataError("there is no parameter " + name);
  }
  json header() const {
    uint64_t length = 0;
    std::memcpy(&length, whole_.data(), sizeof length);
    return json::parse(whole_.substr(sizeof length, length));
  }
  std::string with_header(const json& header) const {
    uint64_t length = 0;
    std::memcpy(&length, whole_.data(), sizeof length);
    const std::string text = header.dump();
    uint64_t size = text.size();
    std::string content(sizeof size, '\0');
    std::memcpy(content.data(), &size, sizeof size);
    return content + text + whole_.substr(sizeof length + length);
  }

  const TemporaryFolder folder_;
  const Architecture architecture_ = lenet();
  std::vector<float> values_;
  std::string whole_;
};

TEST_F(ParametersFile, ComesBackBitByBit) {
  std::vector<float> read(values_.size());
  load_parameters(path(), architecture_, read);
  EXPECT_EQ(std::memcmp(read.data(), values_.data(), values_.size() * sizeof(float)), 0);
  EXPECT_EQ(parameters_sha256(architecture_, read), parameters_sha256(architecture_, values_));
  read[5] += 1;
  EXPECT_NE(parameters_sha256(architecture_, read), parameters_sha256(architecture_, values_));
}

// As the format demands: aligned, without holes, in PyTorch's names and shapes.
TEST_F(ParametersFile, IsASafetensorsFile) {
  const json table = header();
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const Parameter& parameter : architecture_.parameters) {
    const json& entry = table.at(parameter.name);
    EXPECT_EQ(entry.at("dtype"), "F32");
    EXPECT_EQ(entry.at("shape"), json(parameter.shape));
    ranges.emplace_back(entry.at("data_offsets")[0], entry.at("data_offsets")[1]);
  }
  std::sort(ranges.begin(), ranges.end());
  uint64_t end = 0;
  for (const auto& [first, last] : ranges) {
    EXPECT_EQ(first, end);
    end = last;
  }
  uint64_t length = 0;
  std::memcpy(&length, whole_.data(), sizeof length);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(sizeof length + length + end, whole_.size());
  EXPECT_EQ(table.at("conv1.weight").at("shape"), (json{2, 1, 5, 5}));
}

// Where PyTorch has the value of output o, input i, row h, column w, the file has the one that lies
// at o, h, w, i in memory.
TEST_F(ParametersFile, HoldsConvolutionsInPytorchsOrder) {
  const json table = header();
  uint64_t length = 0;
  std::memcpy(&length, whole_.data(), sizeof length);
  for (const char* name : {"conv1.weight", "conv2.weight"}) {
    const json& entry = table.at(name);
    const auto shape = entry.at("shape").get<std::vector<size_t>>();
    ASSERT_EQ(shape.size(), 4u);
    const size_t inputs = shape[1], height = shape[2], width = shape[3];
    const size_t from = sizeof length + length + entry.at("data_offsets")[0].get<size_t>();
    const size_t begin = parameter(name).range.begin;
    for (size_t o = 0; o < shape[0]; ++o)
      for (size_t i = 0; i < inputs; ++i)
        for (size_t h = 0; h < height; ++h)
          for (size_t w = 0; w < width; ++w) {
            const size_t in_file = ((o * inputs + i) * height + h) * width + w;
            const size_t in_memory = ((o * height + h) * width + w) * inputs + i;
            EXPECT_EQ(std::memcmp(whole_.data() + from + in_file * sizeof(float),
                                  &values_[begin + in_memory], sizeof(float)),
                      0)
                << name << " at " << o << ", " << i << ", " << h << ", " << w;
          }
  }
}

// The same values in PyTorch's order and with the last parameter first: another memory, the same
// model, the same checksum.
TEST_F(ParametersFile, ChecksumDoesNotDependOnTheLayoutInMemory) {
  Architecture other = architecture_;
  std::vector<float> moved(values_.size());
  size_t begin = values_.size();
  for (size_t p = 0; p < other.parameters.size(); ++p) {
    const Parameter& old = architecture_.parameters[p];
    begin -= old.range.size();
    other.parameters[p].range = {begin, begin + old.range.size()};
    other.parameters[p].channels_last = false;
    const auto inputs = static_cast<size_t>(old.channels_last ? old.shape[1] : 1);
    const size_t pixels =
        old.channels_last ? static_cast<size_t>(old.shape[2] * old.shape[3]) : old.range.size();
    for (size_t k = 0; k < old.range.size(); ++k) {
      const size_t o = k / (inputs * pixels), i = k / pixels % inputs, pixel = k % pixels;
      moved[begin + k] = values_[old.range.begin + (o * pixels + pixel) * inputs + i];
    }
  }
  EXPECT_NE(moved, values_);
  EXPECT_EQ(parameters_sha256(other, moved), parameters_sha256(architecture_, values_));
  std::swap(moved[begin], moved[begin + 1]);  // of the last one: order counts within a parameter
  EXPECT_NE(parameters_sha256(other, moved), parameters_sha256(architecture_, values_));
}

TEST_F(ParametersFile, ATruncatedFileIsRefused) {
  for (size_t size = 0; size < whole_.size(); size += size < 1200 ? 1 : 37)
    EXPECT_FALSE(loads(whole_.substr(0, size))) << size;
  EXPECT_TRUE(loads(whole_));
}

// An attachment names its own tensors, so it can be read without a model. A damaged one is refused.
TEST_F(ParametersFile, AnAttachmentComesBackOrIsRefused) {
  Attachment kept{.about = R"({"version":1})", .tensors = {}, .values = {1, 2, 3, 4, 5, 6, 7, 8}};
  kept.tensors.parameters = {{.name = "b.weight", .shape = {2, 3}, .range = {0, 6}},
                             {.name = "a.bias", .shape = {2}, .range = {6, 8}}};
  save_attachment(path(), kept);
  const Attachment read = load_attachment(path());
  EXPECT_EQ(read.about, kept.about);
  ASSERT_EQ(read.tensors.parameters.size(), 2u);
  EXPECT_EQ(read.tensors.parameter_count, 8u);
  for (const Parameter& tensor : read.tensors.parameters) {
    const Parameter& before = kept.tensors.parameters[tensor.name == "b.weight" ? 0 : 1];
    EXPECT_EQ(tensor.shape, before.shape);
    for (size_t i = 0; i < before.range.size(); ++i)
      EXPECT_EQ(read.values[tensor.range.begin + i], kept.values[before.range.begin + i]);
  }
  const std::string whole = read_file(path());
  const auto comes_back = [&](const std::string& content) {
    write_file(path(), content);
    try {
      load_attachment(path());
      return true;
    } catch (const DataError&) {
      return false;
    }
  };
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(comes_back(whole.substr(0, size))) << size;
  Random random(4, Stream::kTest);
  size_t refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = whole;
    const size_t at = random.below(whole.size());
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random.below(8)));
    refused += comes_back(damaged) ? 0u : 1u;
  }
  EXPECT_GT(refused, 500u);
  const size_t values = kept.values.size() * sizeof(float);  // any bits are a number
  for (size_t at = whole.size() - values; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_FALSE(comes_back(damaged)) << at;
  }
}

TEST_F(ParametersFile, AFlippedBitIsRefusedOrLoads) {
  Random random(4, Stream::kTest);
  uint64_t length = 0;
  std::memcpy(&length, whole_.data(), sizeof length);
  size_t refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = whole_;
    const size_t at = random.below(sizeof length + length);
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random.below(8)));
    refused += loads(damaged) ? 0u : 1u;
  }
  EXPECT_GT(refused, 1000u);
}

TEST_F(ParametersFile, OffsetsThatLieAreRefused) {
  const std::string name = architecture_.parameters[0].name;
  const uint64_t bytes = architecture_.parameters[0].range.size() * sizeof(float);
  const uint64_t most = std::numeric_limits<uint64_t>::max();
  for (const json& offsets :
       {json{0, bytes + 4}, json{bytes, 0}, json{most - 3, bytes - 4}, json{most - bytes, most},
        json{whole_.size(), whole_.size() + bytes}, json{-4, bytes - 4}, json{0.0, bytes},
        json{"0", bytes}, json{0}, json{0, bytes, 0}, json(), json::object()}) {
    json table = header();
    table[name]["data_offsets"] = offsets;
    EXPECT_FALSE(loads(with_header(table))) << offsets.dump();
  }
}

TEST_F(ParametersFile, OtherTensorsAreRefused) {
  const std::string name = architecture_.parameters[0].name;
  json table = header();
  EXPECT_TRUE(loads(with_header(table)));
  table[name]["dtype"] = "F16";
  EXPECT_FALSE(loads(with_header(table)));
  table = header();
  table[name]["shape"] = json{1, 2, 5, 5};
  EXPECT_FALSE(loads(with_header(table)));
  table = header();
  table.erase(name);
  EXPECT_FALSE(loads(with_header(table)));
  table = header();
  table["more.weight"] = table[name];
  EXPECT_FALSE(loads(with_header(table)));
  EXPECT_FALSE(loads(with_header(json::array())));
}

// A header may promise 2^60 bytes; memory is taken only for what the file holds.
TEST_F(ParametersFile, AHugeHeaderTakesNoMemory) {
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they map terabytes
  const rlimit little{uint64_t{4} << 30, before.rlim_max};
  setrlimit(RLIMIT_AS, &little);
#endif
  for (const uint64_t length : {uint64_t{1} << 33, uint64_t{1} << 60,
                                std::numeric_limits<uint64_t>::max(), uint64_t{whole_.size()}}) {
    std::string damaged = whole_;
    std::memcpy(damaged.data(), &length, sizeof length);
    EXPECT_FALSE(loads(damaged)) << length;
  }
  setrlimit(RLIMIT_AS, &before);
}

TEST_F(ParametersFile, WhatIsNotAFileIsRefused) {
  std::vector<float> read(values_.size());
  EXPECT_THROW(load_parameters(folder_ / "none", architecture_, read), DataError);
  EXPECT_THROW(load_parameters(folder_.path(), architecture_, read), DataError);
}

TEST_F(ParametersFile, SavingLeavesNothingBeside) {
  EXPECT_THROW(save_parameters(folder_ / "no/such/folder", architecture_, values_), DataError);
  std::filesystem::create_directory(folder_ / "occupied");
  EXPECT_THROW(save_parameters(folder_ / "occupied", architecture_, values_), DataError);
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    EXPECT_NE(entry.path().extension(), ".tmp");
    ++files;
  }
  EXPECT_EQ(files, 2u);
}

}  // namespace
}  // namespace tutti

// Files for tests: a directory that disappears with the test, plain and gzip'ed content, IDX
// arrays.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/temporary_folder.h"
#include "data/data_config.h"
#include "tests/core/field_setter.h"

namespace tutti {

class TemporaryDirectory : public TemporaryFolder {
 public:
  std::string write(const std::string& name, const std::string& content) const {
    const std::string file = *this / name;
    std::filesystem::remove(file);  // to replace a file may wait for the disk
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }
  std::string write_gzip(const std::string& name, const std::string& content) const {
    const std::string file = *this / name;
    gzFile out = gzopen(file.c_str(), "wb");
    if (!content.empty()) gzwrite(out, content.data(), static_cast<unsigned>(content.size()));
    gzclose(out);
    return file;
  }
};

inline std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string idx(uint8_t type, const std::vector<uint32_t>& extents,
                       const std::string& values) {
  std::string out = {0, 0, static_cast<char>(type), static_cast<char>(extents.size())};
  for (const uint32_t extent : extents)
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(extent >> shift));
  return out + values;
}

inline std::string ramp(size_t size) {
  std::string out;
  for (size_t i = 0; i < size; ++i) out.push_back(static_cast<char>(i * 7));
  return out;
}

// Loads complete paths with any task seed, all samples for training, and numbers as they are in the
// file.
inline Data load_all(DataConfig config) {
  config.validation = config.test = 0;
  try_set(config, "standardise", false);
  return load_data(config, 1, "");
}

inline Batch gather_all(const Dataset& dataset) {
  std::vector<uint32_t> samples(dataset.size());
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<uint32_t>(i);
  Batch batch;
  dataset.gather(samples, batch);
  return batch;
}

// Expects a DataError whose message contains each of `parts`.
inline void expect_data_error(const DataConfig& config, const std::vector<std::string>& parts) {
  try {
    load_all(config);
    ADD_FAILURE() << "no error";
  } catch (const DataError& error) {
    for (const std::string& part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << '"' << error.what() << "\" lacks \"" << part << '"';
  }
}

}  // namespace tutti

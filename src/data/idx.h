// The IDX format of the MNIST files: two zero bytes, a type, the number of dimensions, their
// extents as 32-bit big-endian numbers, then the values row by row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/readers.h"
#include "data/table.h"

namespace tutti {

enum class IdxType : uint8_t { kByte = 0x08, kFloat = 0x0D };

struct IdxArray {
  IdxType type = IdxType::kByte;
  std::vector<int64_t> extents;  // the first is the number of samples
  std::vector<uint8_t> bytes;    // as in the file
};

// Throws DataError when the file is not what its header says.
IdxArray read_idx_array(const std::string& path);
// The labels of `count` samples: one byte each.
std::vector<int32_t> read_idx_labels(const std::string& path, int64_t count);

// {h, w} images become {1, h, w}; everything else keeps its shape.
std::vector<int64_t> idx_sample_shape(const IdxArray& array);

// The table of an array's samples; floats keep their values, bytes are scaled.
std::shared_ptr<const Dataset> make_idx_table(const std::string& path, IdxArray array,
                                              Scaling scaling, Answers answers);

// Reads images to predict, of the shape of the training data. Without `labels_path` they have no
// answers.
PredictionData read_images_like(const DataDescription& trained_on, const std::string& path,
                                const std::string& labels_path);

// [task] data = { kind = "idx", ... }.
struct IdxData : DataKind {
  std::string path;
  std::string labels_path;

  void visit(Visitor& visitor) override;
  std::vector<std::string*> paths() override { return {&path, &labels_path}; }
  Scaling byte_scaling() const override { return {1.0f / 255, 0}; }
  Source read(uint64_t seed) const override;
  PredictionData read_like(const DataDescription& trained_on, const std::string& path,
                           const std::string& labels_path) const override;
};

}  // namespace tutti

// [task] data = "fashion-mnist".
#pragma once

#include "data/readers.h"

namespace tutti {

struct FashionMnistData : DataKind {
  std::string path;  // of the folder; empty: where the Debian package puts the files

  void visit(Visitor& visitor) override;
  std::vector<std::string*> paths() override { return {&path}; }
  std::vector<std::string> folder_files() const override;
  Scaling byte_scaling() const override;
  Source read(uint64_t seed) const override;
  PredictionData read_like(const DataDescription& trained_on, const std::string& path,
                           const std::string& labels_path) const override;
};

}  // namespace tutti

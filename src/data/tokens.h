// [task] data = { kind = "tokens", ... }.
#pragma once

#include "data/readers.h"

namespace tutti {

struct TokensData : DataKind {
  std::string path;
  int64_t context = 8;  // characters in a sample

  void visit(Visitor& visitor) override;
  std::vector<std::string*> paths() override { return {&path}; }
  Source read(uint64_t seed) const override;
  PredictionData read_like(const DataDescription& trained_on, const std::string& path,
                           const std::string& labels_path) const override;
};

}  // namespace tutti

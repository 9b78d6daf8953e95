// [task] data = { kind = "ratings", ... }.
#pragma once

#include "data/readers.h"

namespace tutti {

struct RatingsData : DataKind {
  std::string path;

  void visit(Visitor& visitor) override;
  std::vector<std::string*> paths() override { return {&path}; }
  bool predicts_numbers() const override { return true; }
  Source read(uint64_t seed) const override;
  PredictionData read_like(const DataDescription& trained_on, const std::string& path,
                           const std::string& labels_path) const override;
};

}  // namespace tutti

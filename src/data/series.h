// [task] data = { kind = "series", ... }.
#pragma once

#include "data/readers.h"

namespace tutti {

struct SeriesData : DataKind {
  std::string path;
  std::string label;    // name of the column to predict
  std::string columns;  // those that predict, names with commas; empty: the label's
  int64_t horizon = 1;  // how many rows ahead
  int64_t context = 8;  // rows that predict
  bool standardise = true;

  void visit(Visitor& visitor) override;
  std::vector<std::string*> paths() override { return {&path}; }
  bool predicts_numbers() const override { return true; }
  FeatureKind feature_kind() const override {
    return standardise ? FeatureKind::kStandardised : FeatureKind::kNumbers;
  }
  Source read(uint64_t seed) const override;
  PredictionData read_like(const DataDescription& trained_on, const std::string& path,
                           const std::string& labels_path) const override;
};

}  // namespace tutti

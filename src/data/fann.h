// [task] data = { kind = "fann", ... }.
#pragma once

#include "data/readers.h"

namespace tutti {

struct FannData : DataKind {
  std::string path;
  std::string test_path;    // the file of the test set; empty: a share of the samples
  std::string label;        // regression: number of the output; empty: the first
  bool regression = false;  // predict a number, not a class
  bool standardise = true;

  void visit(Visitor& visitor) override;
  std::vector<std::string*> paths() override { return {&path, &test_path}; }
  bool predicts_numbers() const override { return regression; }
  FeatureKind feature_kind() const override {
    return standardise ? FeatureKind::kStandardised : FeatureKind::kNumbers;
  }
  Source read(uint64_t seed) const override;
  PredictionData read_like(const DataDescription& trained_on, const std::string& path,
                           const std::string& labels_path) const override;

 private:
  Source read_among(const ClassNames* classes) const;  // as that of LibsvmData
};

}  // namespace tutti

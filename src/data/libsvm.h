// [task] data = { kind = "libsvm", ... }.
#pragma once

#include "data/readers.h"

namespace tutti {

struct LibsvmData : DataKind {
  std::string path;
  std::string test_path;    // the file of the test set; empty: a share of the samples
  int64_t keys = 0;         // indices are keys up to this; 0: they number features
  bool regression = false;  // the label is a number to predict, not a class
  bool standardise = false;  // it would make sparse samples dense: omitted zeros do not stay zero

  void visit(Visitor& visitor) override;
  std::vector<std::string*> paths() override { return {&path, &test_path}; }
  bool predicts_numbers() const override { return regression; }
  FeatureKind feature_kind() const override;
  Source read(uint64_t seed) const override;
  PredictionData read_like(const DataDescription& trained_on, const std::string& path,
                           const std::string& labels_path) const override;

 private:
  // `classes`, if given, are those of the training data. Otherwise they are numbered as they occur.
  Source read_among(const ClassNames* classes) const;
};

}  // namespace tutti

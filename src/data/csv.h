// [task] data = { kind = "csv", ... }.
#pragma once

#include "data/readers.h"

namespace tutti {

enum class CsvHeader { kAuto, kYes, kNo };
constexpr auto words(CsvHeader) { return WordList<3>{"auto", "yes", "no"}; }

struct CsvData : DataKind {
  std::string path;
  std::string label;                      // column by name or number from 0; empty: the last
  CsvHeader header = CsvHeader::kAuto;  // whether the first line names the columns
  bool regression = false;                // the label is a number to predict, not a class
  bool standardise = true;

  void visit(Visitor& visitor) override;
  std::vector<std::string*> paths() override { return {&path}; }
  bool predicts_numbers() const override { return regression; }
  FeatureKind feature_kind() const override {
    return standardise ? FeatureKind::kStandardised : FeatureKind::kNumbers;
  }
  Source read(uint64_t seed) const override;
  PredictionData read_like(const DataDescription& trained_on, const std::string& path,
                           const std::string& labels_path) const override;
};

// Reads a CSV table to predict: of features in their order, or by name where both files have names.
// It may have a column of answers: the one that `label` names, or the last.
PredictionData read_rows_like(const DataDescription& trained_on, const std::string& path,
                              const std::string& label, CsvHeader header);

}  // namespace tutti

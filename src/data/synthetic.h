// [task] data = { kind = "synthetic-linear" or "synthetic-classes", ... }.
#pragma once

#include "data/readers.h"

namespace tutti {

struct SyntheticLinearData : DataKind {
  int64_t samples = 4096;
  int64_t features = 32;
  double noise = 0.1;          // deviation of the targets
  double correlation = 0;      // between the features of a group
  int64_t group = 8;           // features in a group
  int64_t informative = 0;     // features that matter; 0: all

  void visit(Visitor& visitor) override;
  bool predicts_numbers() const override { return true; }
  Source read(uint64_t seed) const override;
  PredictionData read_like(const DataDescription& trained_on, const std::string& path,
                           const std::string& labels_path) const override;
};

struct SyntheticClassesData : DataKind {
  int64_t samples = 4096;
  int64_t features = 32;
  int64_t classes = 10;
  double noise = 0.1;  // deviation from the centre of a class

  void visit(Visitor& visitor) override;
  Source read(uint64_t seed) const override;
  PredictionData read_like(const DataDescription& trained_on, const std::string& path,
                           const std::string& labels_path) const override;
};

// The weights (features, then bias) that generated a "synthetic-linear" set, for closed-form tests.
std::vector<float> synthetic_optimum(const SyntheticLinearData& settings, uint64_t seed);

}  // namespace tutti

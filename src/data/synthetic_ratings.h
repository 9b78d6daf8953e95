// [task] data = { kind = "synthetic-ratings", ... }.
#pragma once

#include "data/readers.h"

namespace tutti {

struct SyntheticRatingsData : DataKind {
  int64_t samples = 4096;
  int64_t users = 200;
  int64_t items = 100;
  int64_t rank = 4;    // of the matrix that they are drawn from
  double noise = 0.1;  // deviation of the ratings

  void visit(Visitor& visitor) override;
  bool predicts_numbers() const override { return true; }
  Source read(uint64_t seed) const override;
  PredictionData read_like(const DataDescription& trained_on, const std::string& path,
                           const std::string& labels_path) const override;
};

}  // namespace tutti

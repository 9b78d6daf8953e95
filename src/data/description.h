// Describes the training data of a model well enough to read other samples in the same way. A run
// keeps it, so that it predicts without its training data.
#pragma once

#include <string>
#include <vector>

#include "data/data_config.h"
#include "data/standardise.h"
#include "data/table.h"

namespace tutti {

struct DataDescription {
  std::string kind;  // as in DataConfig
  std::vector<int64_t> sample_shape;
  int64_t classes = 0;                   // 0 when numbers are predicted
  std::vector<std::string> class_names;  // by class number
  int64_t answers_per_sample = 1;
  std::vector<FeatureScale> features;  // empty when not standardised
  Scaling bytes;                       // for kinds whose files hold bytes
  std::vector<std::string> columns;    // names that became features; else empty

  bool operator==(const DataDescription&) const = default;
};

DataDescription describe(const DataConfig& config, const Dataset& dataset);

}  // namespace tutti

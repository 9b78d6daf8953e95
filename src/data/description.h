// What must be known of the data that a model was trained on to read other samples as the model
// takes them. A run keeps it, so that it predicts without its training data.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/standardise.h"
#include "data/table.h"

namespace tutti {

struct DataDescription {
  std::string kind;  // of DataConfig
  std::vector<int64_t> sample_shape;
  int64_t classes = 0;                   // 0: numbers are predicted
  std::vector<std::string> class_names;  // in the order of their numbers
  int64_t answers_per_sample = 1;
  std::vector<FeatureScale> features;  // with `standardise`; empty: they stay as they are
  Scaling bytes;                       // of kinds whose files hold bytes
  std::vector<std::string> columns;    // of kinds that number names; empty: they are numbers

  bool operator==(const DataDescription&) const = default;
};

DataDescription describe(const DataConfig& config, const Dataset& dataset);

}  // namespace tutti

// What the readers behind data_catalog() return, one of them in each file: samples and how they may
// be split; splits.cpp does the rest.
#pragma once

#include "data/data_config.h"

namespace tutti {

struct Source {
  std::shared_ptr<const Dataset> dataset;
  size_t test_from = 0;     // the samples from here on are a test set of its own; size(): none
  bool sequential = false;  // neighbours overlap: split into contiguous blocks
};

using ClassNames = std::vector<std::string>;

// Part of the training samples for validation, part of all for the test where there is none. The
// same for every seed of a job, so that runs that differ in their seed measure the same thing.
Splits make_splits(const Source& source, const DataConfig& config);

// The share of training samples kept for validation: the setting, or the default of the kind.
double validation_share(const DataConfig& config);

}  // namespace tutti

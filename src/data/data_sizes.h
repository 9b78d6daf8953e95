// The sizes and kinds of samples, without the samples: all that a plan needs to know of the data.
#pragma once

#include <functional>
#include <string>

#include "data/dataset.h"

namespace tutti {

struct DataSizes {
  bool counted = false;                        // the numbers of samples are known
  size_t train = 0, validation = 0, test = 0;  // samples of each split
  std::vector<int64_t> sample_shape = {};
  int64_t classes = 0;  // 0 when numbers are predicted
  int64_t answers_per_sample = 1;
  // Return the fingerprints of contents and split (fingerprint.h). Reading all samples takes time,
  // so that whoever needs them asks.
  std::function<std::string()> contents = {}, split = {};
};

// The result refers to `data`.
DataSizes sizes_of(const Data& data);

}  // namespace tutti

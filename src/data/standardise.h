// Features with mean 0 and deviation 1.
#pragma once

#include <span>
#include <vector>

#include "data/dataset.h"

namespace tutti {

// A feature becomes (value - mean) * scale.
struct FeatureScale {
  double mean = 0;   // a float would be too coarse for large values that vary little
  double scale = 1;  // 1 / deviation
  bool operator==(const FeatureScale&) const = default;
};

// Shifts and scales each feature by its mean and deviation over `samples` (those that are trained
// on: nothing of the others may leak in). Features that never change become 0.
std::shared_ptr<const Dataset> standardised(std::shared_ptr<const Dataset> dataset,
                                            std::span<const uint32_t> samples);

// Those of a data set that standardised() made; none of any other.
std::vector<FeatureScale> feature_scales(const Dataset& dataset);
// The same shifts and scales, one for each feature, for other samples. Without any: as they are.
std::shared_ptr<const Dataset> standardised_by(std::vector<FeatureScale> features,
                                               std::shared_ptr<const Dataset> dataset);

}  // namespace tutti

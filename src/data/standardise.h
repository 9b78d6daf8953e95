// Features with mean 0 and deviation 1, and what they are like before.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace tutti {

// A feature becomes (value - mean) * scale.
struct FeatureScale {
  double mean = 0;   // a float would be too coarse for large values that vary little
  double scale = 1;  // 1 / deviation
  bool operator==(const FeatureScale&) const = default;
};

struct Moments {
  std::vector<double> means, deviations;  // of each feature; a deviation of 0: it never changes
  double least = 0, most = 0;             // of all values
};
// Over `samples`, those that are trained on: nothing of the others may leak in.
Moments moments_of(const Dataset& dataset, std::span<const uint32_t> samples);

// Shifts and scales each feature by its mean and deviation. Features that never change become 0.
std::shared_ptr<const Dataset> standardised(std::shared_ptr<const Dataset> dataset,
                                            const Moments& moments);

FeatureSpread spread_of(const Moments& moments);
// Of samples gathered as rows: a feature's scale is its largest value, since one that is seldom
// there would have a small deviation whatever its values are.
FeatureSpread spread_of_rows(const Dataset& dataset, std::span<const uint32_t> samples);

// "12 numbers from 0.001 to 54000, standardised".
std::string spread_text(const FeatureSpread& spread);
// Whether features that are used as they are differ so much that training stays at chance.
bool differ_in_scale(const FeatureSpread& spread);

// Those of a data set that standardised() made; none of any other.
std::vector<FeatureScale> feature_scales(const Dataset& dataset);
// The same shifts and scales, one for each feature, for other samples. Without any: as they are.
std::shared_ptr<const Dataset> standardised_by(std::vector<FeatureScale> features,
                                               std::shared_ptr<const Dataset> dataset);

}  // namespace tutti

// Scales features to mean 0 and deviation 1, and describes what they were like before.
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
  std::vector<double> means, deviations;  // per feature; the deviation of a constant is 0
  double least = 0, most = 0;             // over all features
};
// Measures the training samples only: nothing may leak in from the others.
Moments moments_of(const Dataset& dataset, std::span<const uint32_t> samples);

// Shifts and scales each feature to mean 0 and deviation 1. Features that never change become 0.
std::shared_ptr<const Dataset> standardised(std::shared_ptr<const Dataset> dataset,
                                            const Moments& moments);

FeatureSpread spread_of(const Moments& moments);
// Measures samples that are gathered as rows. The scale of a feature is its largest value: a rare
// feature would have a small deviation whatever its values are.
FeatureSpread spread_of_rows(const Dataset& dataset, std::span<const uint32_t> samples);

// Returns a text such as "12 numbers from 0.001 to 54000, standardised".
std::string spread_text(const FeatureSpread& spread);
// Returns whether unscaled features differ so much that training would stay at chance.
bool differ_in_scale(const FeatureSpread& spread);

// Returns the scales of a data set that standardised() made; empty for any other.
std::vector<FeatureScale> feature_scales(const Dataset& dataset);
// Applies these shifts and scales, one for each feature, to other samples. Without any the samples
// stay as they are.
std::shared_ptr<const Dataset> standardised_by(std::vector<FeatureScale> features,
                                               std::shared_ptr<const Dataset> dataset);

}  // namespace tutti

#include "data/standardise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "data/table.h"

namespace tutti {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kStandardiseChunk = 256;  // samples that are gathered at a time

class Standardised : public Dataset {
 public:
  Standardised(std::shared_ptr<const Dataset> plain, std::vector<FeatureScale> features)
      : plain_(std::move(plain)), features_(std::move(features)) {}

  size_t size() const override { return plain_->size(); }
  std::vector<int64_t> sample_shape() const override { return plain_->sample_shape(); }
  int64_t classes() const override { return plain_->classes(); }
  int64_t answers_per_sample() const override { return plain_->answers_per_sample(); }
  std::vector<std::string> class_names() const override { return plain_->class_names(); }
  std::vector<std::string> column_names() const override { return plain_->column_names(); }
  size_t memory_bytes() const override {
    return plain_->memory_bytes() + features_.size() * sizeof(FeatureScale);
  }

  void visit_contents(const VisitBytes& visit) const override {
    plain_->visit_contents(visit);
    visit(std::as_bytes(std::span(features_)));
  }

  void gather(std::span<const uint32_t> samples, Batch& batch) const override {
    plain_->gather(samples, batch);
    for (size_t begin = 0; begin < batch.features.size(); begin += features_.size())
      for (size_t i = 0; i < features_.size(); ++i) {
        float& value = batch.features[begin + i];
        value = static_cast<float>((static_cast<double>(value) - features_[i].mean) *
                                   features_[i].scale);
      }
  }

  const std::vector<FeatureScale>& features() const { return features_; }

 private:
  std::shared_ptr<const Dataset> plain_;
  std::vector<FeatureScale> features_;
};

// Calls visit(position of the feature, value) for all features of all samples.
template <class Visit>
void for_each_value(const Dataset& dataset, std::span<const uint32_t> samples, Visit visit) {
  const size_t width = elements_of(dataset.sample_shape());
  Batch batch;
  for (size_t begin = 0; begin < samples.size(); begin += kStandardiseChunk) {
    dataset.gather(samples.subspan(begin, std::min(kStandardiseChunk, samples.size() - begin)),
                   batch);
    for (size_t i = 0; i < batch.features.size(); ++i)
      visit(i % width, static_cast<double>(batch.features[i]));
  }
}

// Returns the ratio of the largest scale to the smallest, over the features that vary.
double ratio_of(const std::vector<double>& scales) {
  double least = kInfinity, most = 0;
  for (const double scale : scales) {
    if (scale > 0) least = std::min(least, scale);
    most = std::max(most, scale);
  }
  return most > 0 ? most / least : 1;
}

}  // namespace

// In two passes, mean first: a difference of large squares would lose the deviation.
Moments moments_of(const Dataset& dataset, std::span<const uint32_t> samples) {
  const size_t width = elements_of(dataset.sample_shape());
  const auto count = static_cast<double>(std::max<size_t>(1, samples.size()));
  Moments moments{std::vector<double>(width), std::vector<double>(width), kInfinity, -kInfinity};
  for_each_value(dataset, samples, [&](size_t i, double value) {
    moments.means[i] += value / count;
    moments.least = std::min(moments.least, value);
    moments.most = std::max(moments.most, value);
  });
  for_each_value(dataset, samples, [&](size_t i, double value) {
    const double distance = value - moments.means[i];
    moments.deviations[i] += distance * distance / count;
  });
  for (size_t i = 0; i < width; ++i) {
    const double deviation = std::sqrt(moments.deviations[i]);
    // What rounding leaves of a constant feature is not a deviation.
    const bool varies = deviation > 1e-7 * std::abs(moments.means[i]) && deviation > 1e-30;
    moments.deviations[i] = varies ? deviation : 0;
  }
  return moments;
}

std::shared_ptr<const Dataset> standardised(std::shared_ptr<const Dataset> dataset,
                                            const Moments& moments) {
  std::vector<FeatureScale> features(moments.means.size());
  for (size_t i = 0; i < features.size(); ++i)
    features[i] = {moments.means[i], moments.deviations[i] > 0 ? 1 / moments.deviations[i] : 1};
  return std::make_shared<Standardised>(std::move(dataset), std::move(features));
}

FeatureSpread spread_of(const Moments& moments) {
  return {moments.means.size(), moments.least, moments.most, ratio_of(moments.deviations)};
}

FeatureSpread spread_of_rows(const Dataset& dataset, std::span<const uint32_t> samples) {
  FeatureSpread spread{elements_of(dataset.sample_shape())};
  std::vector<double> scales(spread.count);
  Batch batch;
  for (size_t begin = 0; begin < samples.size(); begin += kStandardiseChunk) {
    dataset.gather(samples.subspan(begin, std::min(kStandardiseChunk, samples.size() - begin)),
                   batch);
    for (size_t i = 0; i < batch.rows.values.size(); ++i) {
      const auto value = static_cast<double>(batch.rows.values[i]);
      double& scale = scales[batch.rows.columns[i]];
      scale = std::max(scale, std::abs(value));
      spread.least = std::min(spread.least, value);
      spread.most = std::max(spread.most, value);
    }
  }
  spread.ratio = ratio_of(scales);
  return spread;
}

std::string spread_text(const FeatureSpread& spread) {
  return fmt::format("{} from {:.6g} to {:.6g}, {}",
                     spread.count == 1 ? "1 number" : fmt::format("{} numbers", spread.count),
                     spread.least, spread.most,
                     spread.standardised ? "standardised" : "as they are in the file");
}

bool differ_in_scale(const FeatureSpread& spread) {
  constexpr double kMuch = 1e3;
  return !spread.standardised && spread.ratio > kMuch;
}

std::vector<FeatureScale> feature_scales(const Dataset& dataset) {
  const auto* standardised = dynamic_cast<const Standardised*>(&dataset);
  return standardised ? standardised->features() : std::vector<FeatureScale>();
}

std::shared_ptr<const Dataset> standardised_by(std::vector<FeatureScale> features,
                                               std::shared_ptr<const Dataset> dataset) {
  if (features.empty()) return dataset;
  TUTTI_CHECK(features.size() == elements_of(dataset->sample_shape()));
  return std::make_shared<Standardised>(std::move(dataset), std::move(features));
}

}  // namespace tutti

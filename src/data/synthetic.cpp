// Generated data whose best model is known. Each sample is keyed by its number, so that a larger
// set starts with the samples of a smaller one.
#include "data/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/random.h"
#include "data/csv.h"
#include "data/prediction.h"
#include "data/table.h"

namespace tutti {
namespace {

// Sequences of Stream::kSynthetic.
constexpr uint32_t kOptimum = 0;
constexpr uint32_t kSamples = 1;
constexpr uint32_t kCentres = 2;
constexpr uint32_t kFactors = 3;

void visit_sizes(Visitor& v, int64_t& samples, int64_t& features) {
  v.field("samples", samples, {1, 4294967295}, "how many samples");
  v.field("features", features, {1, 1 << 24}, "features per sample");
}

void refuse_huge(int64_t samples, int64_t features) {
  constexpr int64_t kMost = int64_t{1} << 32;
  if (samples < 1 || features < 1 || samples > kMost / features)
    throw ConfigError("task.data.samples",
                      fmt::format("task.data.samples = {} times task.data.features = {} must be "
                                  "between 1 and 2^32 values (16 GiB)",
                                  samples, features));
}

}  // namespace

std::vector<float> synthetic_optimum(const SyntheticLinearData& settings, uint64_t seed) {
  Random random(seed, Stream::kSynthetic, kOptimum);
  std::vector<float> weights(static_cast<size_t>(settings.features) + 1);
  for (float& weight : weights) weight = static_cast<float>(random.normal());
  const int64_t wanted = std::min(settings.informative, settings.features);
  if (wanted == 0) return weights;
  int64_t next = 0;  // of those that matter
  for (int64_t j = 0; j < settings.features; ++j) {
    if (next < wanted && j == next * settings.features / wanted)
      ++next;
    else
      weights[static_cast<size_t>(j)] = 0;
  }
  return weights;
}

void SyntheticLinearData::visit(Visitor& v) {
  visit_sizes(v, samples, features);
  v.field("noise", noise, kNotNegative, "deviation of the noise on the targets");
  v.field("correlation", correlation, {0, 0.9999}, "between the features of a group");
  v.field("group", group, kAtLeastOne, "features in a group, one beside the other");
  v.field("informative", informative, kNotNegative,
          "features whose weight is not zero, spread evenly; 0: all");
}

Source SyntheticLinearData::read(uint64_t seed) const {
  refuse_huge(samples, features);
  const auto count = static_cast<size_t>(samples);
  const auto width = static_cast<size_t>(features);
  const std::vector<float> optimum = synthetic_optimum(*this, seed);
  std::vector<float> values(count * width);
  Answers answers;
  answers.targets.resize(count);
  // The features of a group have a normal number in common.
  const double common = std::sqrt(correlation), own = std::sqrt(1 - correlation);
  for (size_t i = 0; i < count; ++i) {
    Random random(seed, Stream::kSynthetic, kSamples, static_cast<uint32_t>(i));
    Random factors(seed, Stream::kSynthetic, kFactors, static_cast<uint32_t>(i));
    double target = optimum[width], factor = 0;
    for (size_t j = 0; j < width; ++j) {
      if (common > 0 && j % static_cast<size_t>(group) == 0) factor = factors.normal();
      const auto value = static_cast<float>(own * random.normal() + common * factor);
      values[i * width + j] = value;
      target += double{optimum[j]} * double{value};
    }
    answers.targets[i] = static_cast<float>(target + noise * random.normal());
  }
  return {make_table({features}, std::move(values), std::move(answers)), count};
}

PredictionData SyntheticLinearData::read_like(const DataDescription& trained_on,
                                              const std::string& path, const std::string&) const {
  return read_rows_like(trained_on, path, "", CsvHeader::kAuto);
}

void SyntheticClassesData::visit(Visitor& v) {
  visit_sizes(v, samples, features);
  v.field("classes", classes, {2, 1 << 20}, "how many classes");
  v.field("noise", noise, kNotNegative, "deviation of the samples from the centre of a class");
}

Source SyntheticClassesData::read(uint64_t seed) const {
  refuse_huge(samples, features);
  const auto count = static_cast<size_t>(samples);
  const auto width = static_cast<size_t>(features);
  Random draw(seed, Stream::kSynthetic, kCentres);
  std::vector<double> centres(static_cast<size_t>(classes) * width);
  for (double& value : centres) value = draw.normal();
  std::vector<float> values(count * width);
  Answers answers;
  answers.classes = classes;
  answers.labels.resize(count);
  for (size_t i = 0; i < count; ++i) {
    Random random(seed, Stream::kSynthetic, kSamples, static_cast<uint32_t>(i));
    const size_t label = i % static_cast<size_t>(classes);
    answers.labels[i] = static_cast<int32_t>(label);
    for (size_t j = 0; j < width; ++j)
      values[i * width + j] =
          static_cast<float>(centres[label * width + j] + noise * random.normal());
  }
  return {make_table({features}, std::move(values), std::move(answers)), count};
}

PredictionData SyntheticClassesData::read_like(const DataDescription& trained_on,
                                               const std::string& path, const std::string&) const {
  return read_rows_like(trained_on, path, "", CsvHeader::kAuto);
}

}  // namespace tutti

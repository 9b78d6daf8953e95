// Generated data whose best model is known. Each sample is keyed by its number, so that a larger
// set starts with the samples of a smaller one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/random.h"
#include "data/readers.h"

namespace tutti {
namespace {

// Sequences of Stream::kSynthetic.
constexpr uint32_t kOptimum = 0;
constexpr uint32_t kSamples = 1;
constexpr uint32_t kCentres = 2;
constexpr uint32_t kFactors = 3;

void refuse_huge(const DataConfig& config) {
  constexpr int64_t kMost = int64_t{1} << 32;
  if (config.samples < 1 || config.features < 1 || config.samples > kMost / config.features)
    throw ConfigError("task.data.samples",
                      fmt::format("task.data.samples = {} times task.data.features = {} must be "
                                  "between 1 and 2^32 values (16 GiB)",
                                  config.samples, config.features));
}

}  // namespace

std::vector<float> synthetic_optimum(const DataConfig& config, uint64_t seed) {
  Random random(seed, Stream::kSynthetic, kOptimum);
  std::vector<float> weights(static_cast<size_t>(config.features) + 1);
  for (float& weight : weights) weight = static_cast<float>(random.normal());
  const int64_t wanted = std::min(config.informative, config.features);
  if (wanted == 0) return weights;
  int64_t next = 0;  // of those that matter
  for (int64_t j = 0; j < config.features; ++j) {
    if (next < wanted && j == next * config.features / wanted)
      ++next;
    else
      weights[static_cast<size_t>(j)] = 0;
  }
  return weights;
}

Source make_synthetic_linear(const DataConfig& config, uint64_t seed) {
  refuse_huge(config);
  const auto count = static_cast<size_t>(config.samples);
  const auto width = static_cast<size_t>(config.features);
  const std::vector<float> optimum = synthetic_optimum(config, seed);
  std::vector<float> features(count * width);
  Answers answers;
  answers.targets.resize(count);
  // The features of a group have a normal number in common.
  const double common = std::sqrt(config.correlation), own = std::sqrt(1 - config.correlation);
  for (size_t i = 0; i < count; ++i) {
    Random random(seed, Stream::kSynthetic, kSamples, static_cast<uint32_t>(i));
    Random factors(seed, Stream::kSynthetic, kFactors, static_cast<uint32_t>(i));
    double target = optimum[width], factor = 0;
    for (size_t j = 0; j < width; ++j) {
      if (common > 0 && j % static_cast<size_t>(config.group) == 0) factor = factors.normal();
      const auto value = static_cast<float>(own * random.normal() + common * factor);
      features[i * width + j] = value;
      target += double{optimum[j]} * double{value};
    }
    answers.targets[i] = static_cast<float>(target + config.noise * random.normal());
  }
  return {make_table({config.features}, std::move(features), std::move(answers)), count};
}

Source make_synthetic_classes(const DataConfig& config, uint64_t seed) {
  refuse_huge(config);
  const auto count = static_cast<size_t>(config.samples);
  const auto width = static_cast<size_t>(config.features);
  const auto classes = static_cast<size_t>(config.classes);
  Random draw(seed, Stream::kSynthetic, kCentres);
  std::vector<double> centres(classes * width);
  for (double& value : centres) value = draw.normal();
  std::vector<float> features(count * width);
  Answers answers;
  answers.classes = config.classes;
  answers.labels.resize(count);
  for (size_t i = 0; i < count; ++i) {
    Random random(seed, Stream::kSynthetic, kSamples, static_cast<uint32_t>(i));
    const size_t label = i % classes;
    answers.labels[i] = static_cast<int32_t>(label);
    for (size_t j = 0; j < width; ++j)
      features[i * width + j] =
          static_cast<float>(centres[label * width + j] + config.noise * random.normal());
  }
  return {make_table({config.features}, std::move(features), std::move(answers)), count};
}

}  // namespace tutti

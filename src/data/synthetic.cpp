// Generated data whose best model is known. Each sample is keyed by its number, so that a larger
// set starts with the samples of a smaller one.
#include <fmt/format.h>

#include "core/error.h"
#include "core/random.h"
#include "data/readers.h"

namespace tutti {
namespace {

// Sequences of Stream::kSynthetic.
constexpr uint32_t kOptimum = 0;
constexpr uint32_t kSamples = 1;
constexpr uint32_t kCentres = 2;

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
  for (size_t i = 0; i < count; ++i) {
    Random random(seed, Stream::kSynthetic, kSamples, static_cast<uint32_t>(i));
    double target = optimum[width];
    for (size_t j = 0; j < width; ++j) {
      const auto value = static_cast<float>(random.normal());
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

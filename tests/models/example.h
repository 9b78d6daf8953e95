// A model with its memory and random batches, for tests.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/random.h"
#include "models/model.h"
#include "models/model_config.h"

namespace tutti {

// What tests of every model run with.
struct ModelCase {
  const char* name;
  ModelConfig config;
  std::vector<int64_t> shape;
  int64_t classes;
};

struct Example {
  Example(const ModelConfig& config, const std::vector<int64_t>& shape, int64_t classes,
          uint64_t seed = 1, int threads = 1)
      : architecture(make_architecture(config, shape, classes)),
        parameters(architecture.parameter_count),
        gradients(architecture.parameter_count) {
    initialise(architecture, seed, parameters);
    model = tutti_torch_models.whole(architecture, {parameters, gradients},
                                     {.seed = seed, .threads = threads});
  }

  // `count` samples numbered from `first` on; a sample is a function of its number.
  Batch batch(uint32_t first, uint32_t count, uint64_t step = 1) const {
    Batch result;
    result.step = step;
    size_t width = 1;
    for (int64_t extent : architecture.input) width *= static_cast<size_t>(extent);
    for (uint32_t sample = first; sample < first + count; ++sample) {
      Random random(11, Stream::kTest, sample);
      result.samples.push_back(sample);
      const auto outputs = static_cast<uint64_t>(architecture.outputs);
      const bool takes_codes = architecture.layers.front().kind == LayerKind::kEmbedding;
      for (size_t i = 0; i < width; ++i)
        result.features.push_back(takes_codes ? static_cast<float>(random.below(outputs))
                                              : static_cast<float>(2 * random.uniform() - 1));
      if (architecture.classification)
        for (int64_t i = 0; i < architecture.positions; ++i)
          result.labels.push_back(static_cast<int32_t>(random.below(outputs)));
      else
        result.targets.push_back(static_cast<float>(random.normal()));
    }
    return result;
  }

  // The gradient as a vector of its own, with nothing of what the buffer held before.
  std::vector<float> gradient(const Batch& batch, float scale = 1) {
    gradients.assign(gradients.size(), std::numeric_limits<float>::quiet_NaN());
    model->gradient(batch, scale, {});
    return gradients;
  }

  Architecture architecture;
  std::vector<float> parameters, gradients;
  std::unique_ptr<Model> model;
};

inline std::vector<float> scores_of(Model& model, const Batch& batch) {
  const Architecture& architecture = model.architecture();
  std::vector<float> scores(batch.size() *
                            static_cast<size_t>(architecture.positions * architecture.outputs));
  model.predict(batch, scores);
  return scores;
}

}  // namespace tutti

#include "tests/models/reference.h"

#include <cmath>
#include <numeric>

#include "models/dropout.h"
#include "models/layout.h"

namespace tutti {
namespace {

using Values = std::vector<double>;

double cross_entropy_of(const double* scores, size_t classes, int32_t label) {
  double sum = 0;
  for (size_t i = 0; i < classes; ++i) sum += std::exp(scores[i]);
  return std::log(sum) - scores[label];
}

}  // namespace

Reference::Reference(const Architecture& architecture, uint64_t seed)
    : architecture_(architecture), seed_(seed) {
  std::vector<float> positions(architecture.parameter_count);
  std::iota(positions.begin(), positions.end(), 0.0F);  // exact below 2^24
  for (const Parameter& parameter : architecture.parameters) {
    std::vector<float> exported(parameter.range.size());
    export_parameter(parameter, positions, exported);
    for (float position : exported) memory_of_.push_back(static_cast<size_t>(position));
  }
}

Values Reference::scores(const Values& flat, const Batch& batch, bool training, Values* off) const {
  Values torch(flat.size()), result;
  for (size_t i = 0; i < flat.size(); ++i) torch[i] = flat[memory_of_[i]];
  const size_t width = batch.features.size() / batch.size();
  std::vector<Values> samples;
  for (auto first = batch.features.begin(); first != batch.features.end();
       first += static_cast<ptrdiff_t>(width))
    samples.emplace_back(first, first + static_cast<ptrdiff_t>(width));
  std::vector<std::map<size_t, Values>> kept(samples.size());
  for (size_t i = 0; i < architecture_.layers.size(); ++i) {
    const Layer& layer = architecture_.layers[i];
    if (layer.kind == LayerKind::kBatchNorm)
      apply_batch_norm(architecture_, layer, torch, training, samples, off);
    for (size_t row = 0; row < samples.size(); ++row) {
      Values& x = samples[row];
      x = apply_layer(architecture_, i, torch, x, kept[row]);
      if (layer.kind != LayerKind::kDropout || !training) continue;
      std::vector<float> mask(x.size());
      fill_dropout_mask({seed_, batch.step, batch.samples[row], static_cast<uint32_t>(i)},
                        layer.probability, mask);
      for (size_t j = 0; j < x.size(); ++j) x[j] *= static_cast<double>(mask[j]);
    }
  }
  for (const Values& x : samples) result.insert(result.end(), x.begin(), x.end());
  return result;
}

double Reference::training_loss(const Values& flat, const Batch& batch) const {
  const Values all = scores(flat, batch, true);
  const auto outputs = static_cast<size_t>(architecture_.outputs);
  double loss = 0;
  for (size_t row = 0; row < batch.size(); ++row) {
    if (architecture_.classification) {
      const auto positions = static_cast<size_t>(architecture_.positions);
      for (size_t i = row * positions; i < (row + 1) * positions; ++i)
        loss += cross_entropy_of(all.data() + i * outputs, outputs, batch.labels[i]) /
                static_cast<double>(positions);
    } else {
      const double error = all[row] - static_cast<double>(batch.targets[row]);
      loss += error * error / 2;
    }
    for (const Parameter& parameter : architecture_.parameters)
      if (parameter.shape.size() > 1)
        for (size_t i = parameter.range.begin; i < parameter.range.end; ++i)
          loss += architecture_.l2 / 2 * flat[i] * flat[i] + architecture_.l1 * std::abs(flat[i]);
  }
  return loss;
}

}  // namespace tutti

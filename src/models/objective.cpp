#include "models/objective.h"

#include <cmath>

#include "core/error.h"
#include "models/losses.h"

namespace tutti {

double Objective::loss(std::span<const float> scores, const Batch& batch, size_t begin, size_t size,
                       float scale, std::span<float> slopes) const {
  if (architecture_.classification) {
    const auto positions = static_cast<double>(architecture_.positions);
    return cross_entropy(scores, labels_of(batch, begin, size),
                         static_cast<float>(static_cast<double>(scale) / positions), slopes) /
           positions;
  }
  TUTTI_CHECK(batch.targets.size() == batch.size());
  return half_squared_error(scores, std::span(batch.targets).subspan(begin, size), scale, slopes);
}

double Objective::correct(std::span<const float> scores, const Batch& batch, size_t begin,
                          size_t size) const {
  if (!architecture_.classification) return 0;
  return static_cast<double>(count_correct(scores, labels_of(batch, begin, size))) /
         static_cast<double>(architecture_.positions);
}

// Those of the samples from `begin` on: one at each position.
std::span<const int32_t> Objective::labels_of(const Batch& batch, size_t begin, size_t size) const {
  const auto positions = static_cast<size_t>(architecture_.positions);
  TUTTI_CHECK(batch.labels.size() == batch.size() * positions);
  return std::span(batch.labels).subspan(begin * positions, size * positions);
}

void Objective::penalise(const Layer& layer, double factor, std::span<const float> parameters,
                         std::span<float> gradients) const {
  if (architecture_.l2 == 0 && architecture_.l1 == 0) return;
  const auto slope = static_cast<float>(factor * architecture_.l2);
  const auto step = static_cast<float>(factor * architecture_.l1);
  const Range range = architecture_.parameters[layer.parameters.front()].range;
  for (size_t i = range.begin; i < range.end; ++i) {
    gradients[i] += slope * parameters[i];
    // A subgradient: 0 will do at 0.
    if (step > 0 && parameters[i] != 0) gradients[i] += std::copysign(step, parameters[i]);
  }
}

double Objective::penalty(std::span<const float> parameters) const {
  if (architecture_.l2 == 0 && architecture_.l1 == 0) return 0;
  double squares = 0, sizes = 0;
  for (const Layer& layer : architecture_.layers) {
    if (layer.parameters.empty()) continue;
    const Range range = architecture_.parameters[layer.parameters.front()].range;
    for (float weight : parameters.subspan(range.begin, range.size())) {
      squares += static_cast<double>(weight) * static_cast<double>(weight);
      sizes += std::abs(static_cast<double>(weight));
    }
  }
  return architecture_.l2 / 2 * squares + architecture_.l1 * sizes;
}

}  // namespace tutti

#include "models/split_loss.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "models/losses.h"

namespace tutti {

SplitLoss split_cross_entropy(std::span<const float> scores, std::span<const int32_t> labels,
                              Range classes, size_t all, float scale, std::span<float> slopes,
                              ShardGroup& group) {
  const size_t rows = labels.size(), own = classes.size();
  TUTTI_CHECK(scores.size() == rows * own);
  std::vector<float> highest(split_loss_maximum(rows));
  for (size_t row = 0; row < rows; ++row)
    highest[row] = *std::max_element(scores.begin() + static_cast<ptrdiff_t>(row * own),
                                     scores.begin() + static_cast<ptrdiff_t>((row + 1) * own));
  group.maximum(highest);

  // Of each row: the sum of exponentials, the label's score, and how much speaks against it.
  std::vector<float> sums(split_loss_sum(rows), 0.0F);
  for (size_t row = 0; row < rows; ++row) {
    const size_t label = checked_label(labels[row], all);
    double sum = 0;
    for (size_t i = 0; i < own; ++i) {
      const float score = scores[row * own + i];
      sum += std::exp(static_cast<double>(score - highest[row]));
      if (classes.begin + i < label && score == highest[row]) sums[3 * row + 2] += 1;
      if (classes.begin + i != label) continue;
      sums[3 * row + 1] = score - highest[row];
      if (score != highest[row]) sums[3 * row + 2] += 1;
    }
    sums[3 * row] = static_cast<float>(sum);
  }
  group.sum(sums);

  SplitLoss result;
  for (size_t row = 0; row < rows; ++row) {
    const auto sum = static_cast<double>(sums[3 * row]);
    result.loss += std::log(sum) - static_cast<double>(sums[3 * row + 1]);
    if (sums[3 * row + 2] == 0) result.correct += 1;
    if (slopes.empty()) continue;
    const auto label = static_cast<size_t>(labels[row]);
    for (size_t i = 0; i < own; ++i) {
      const double share =
          std::exp(static_cast<double>(scores[row * own + i] - highest[row])) / sum;
      slopes[row * own + i] =
          scale * static_cast<float>(classes.begin + i == label ? share - 1 : share);
    }
  }
  return result;
}

}  // namespace tutti

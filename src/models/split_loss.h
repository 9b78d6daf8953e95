// Cross-entropy where each shard has the scores of some classes alone.
//
// What the shards exchange is small: for each row its largest score, then the sum of its
// exponentials, the score of the label, and whether another one comes before that.
#pragma once

#include <cstdint>
#include <span>

#include "core/range.h"
#include "models/shard.h"

namespace tutti {

struct SplitLoss {
  double loss = 0;     // as cross_entropy()
  double correct = 0;  // as count_correct()
};

// `scores` has a row for each label, with those of `classes` out of `all`. Writes scale * gradient
// by them to `slopes` unless it is empty. Every shard gets the same result.
SplitLoss split_cross_entropy(std::span<const float> scores, std::span<const int32_t> labels,
                              Range classes, size_t all, float scale, std::span<float> slopes,
                              ShardGroup& group);

// What it has the group do, over so many rows: a maximum and a sum.
inline size_t split_loss_maximum(size_t rows) { return rows; }
inline size_t split_loss_sum(size_t rows) { return 3 * rows; }

}  // namespace tutti

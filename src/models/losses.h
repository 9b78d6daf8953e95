// Losses over the scores of a batch, with their gradients, and what is counted as correct. Where a
// loss is not a finite number, not all of its gradient is: whoever sums gradients learns of it.
#pragma once

#include <cstdint>
#include <span>

namespace tutti {

// Throws DataError for a label that is none of the classes.
size_t checked_label(int32_t label, size_t classes);

// Cross-entropy of softmax(scores), summed over the rows of `scores` (one per label). Writes
// scale * gradient to `slopes` unless it is empty. Throws DataError for a label out of range.
double cross_entropy(std::span<const float> scores, std::span<const int32_t> labels, float scale,
                     std::span<float> slopes);

// Half the squared error, summed. Writes scale * gradient to `slopes` unless it is empty.
double half_squared_error(std::span<const float> scores, std::span<const float> targets,
                          float scale, std::span<float> slopes);

// Rows whose highest score is the label's; the first of equal scores counts.
size_t count_correct(std::span<const float> scores, std::span<const int32_t> labels);

}  // namespace tutti

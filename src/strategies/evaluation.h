// Measuring quality on samples: how nodes share them, and how what they find becomes one figure.
#pragma once

#include "collectives/exact_sum.h"
#include "collectives/topology.h"
#include "core/bytes.h"
#include "strategies/strategy.h"

namespace tutti {

// Quality on the given samples, shared among the members: each of them gets the same result, which
// does not depend on how many they are. A node that is not one of them gets NaN.
struct Quality {
  double loss = 0;     // mean
  double quality = 0;  // accuracy, or mean squared error
};
// Parts of tags of purpose kEvaluation. Strategies that say more while they evaluate begin at 2.
enum class EvaluationPart : uint64_t { kValidation = 0, kTest = 1 };
Quality evaluate_together(Context& context, std::span<const uint32_t> samples, Tag tag);
Quality evaluate_among(Context& context, std::span<const Rank> members,
                       std::span<const uint32_t> samples, Tag tag);

// The same in pieces, for nodes that do not evaluate at the same time: samples are evaluated in
// chunks whose sums are integers, so they add up to the same result whoever computes them.
struct EvaluationSums {
  ExactSum loss, correct;
  ExactSum invalid;  // samples whose loss is not a finite number
  std::span<std::byte> bytes() { return writable_bytes_of(std::span(this, 1)); }
};
static_assert(sizeof(EvaluationSums) == 3 * sizeof(ExactSum));
void add_evaluation(EvaluationSums& sums, const Evaluation& chunk);
// Small enough that every worker of a big cluster gets a share, large enough to compute well.
inline constexpr size_t kEvaluationChunk = 64;
size_t evaluation_chunks(size_t samples);
// The samples of chunks [first, end).
std::span<const uint32_t> samples_of_chunks(std::span<const uint32_t> samples, size_t first,
                                            size_t end);
// Chunks first, first + stride, ... below `end`.
EvaluationSums evaluate_chunks(Context& context, std::span<const uint32_t> samples, size_t first,
                               size_t end, size_t stride);
// The sums of all members of a group, on each of them.
void add_among(Context& context, const Group& group, EvaluationSums& sums, Tag tag);
// Throws DivergedError when a loss was not a number. Not a number itself when only costs count, and
// where there are no samples.
Quality quality_of(const Context& context, const EvaluationSums& sums, size_t samples);
// The same, told what it needs of the context.
Quality quality_of(const EvaluationSums& sums, size_t samples, bool classification,
                   Arithmetic arithmetic);

}  // namespace tutti

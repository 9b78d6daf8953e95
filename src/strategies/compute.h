// Computing on a node: the arithmetic, and what it costs there.
#pragma once

#include "collectives/exact_sum.h"
#include "core/error.h"
#include "strategies/strategy.h"

namespace tutti {

// The cost of the passes over a batch; nothing for an empty batch. The fixed cost of a gradient
// belongs to its forward pass.
Work forward_work(const Architecture& architecture, size_t samples);
Work backward_work(const Architecture& architecture, size_t samples);

// Parameters that are still on their way when a forward pass begins.
class LateParameters {
 public:
  virtual ~LateParameters() = default;
  virtual bool has(Range range) = 0;
  virtual void await(Range range) = 0;  // returns when they are in the model
};

// Runs model.gradient(), charges its time and counts its samples. Real fabrics call `ready` from
// within the backward pass.
// On a virtual one the arithmetic happens first, outside of time, and its ready ranges are then
// replayed, each after the work that makes it ready. With `late` parameters each layer of the
// forward pass waits for its own and for those before: on a virtual fabric the arithmetic comes
// when all are there, and the time of each layer passes before the next one waits.
double compute_gradient(Context& context, const Batch& batch, float scale,
                        const Model::Ready& ready, LateParameters* late = nullptr);

// Quality on the given samples, shared among the members: each of them gets the same result, which
// does not depend on how many they are. A node that is not one of them gets NaN.
struct Quality {
  double loss = 0;     // mean
  double quality = 0;  // accuracy, or mean squared error
};
// Of tags of purpose kEvaluation. Strategies that say more while they evaluate begin at 2.
enum class EvaluationPart : uint64_t { kValidation = 0, kTest = 1 };
Quality evaluate_together(Context& context, std::span<const uint32_t> samples, Tag tag);
Quality evaluate_among(Context& context, std::span<const Rank> members,
                       std::span<const uint32_t> samples, Tag tag);

// The same in pieces, for nodes that do not evaluate at the same time: samples are evaluated in
// chunks whose sums are integers, so they add up to the same result whoever computes them.
struct EvaluationSums {
  ExactSum loss, correct;
  ExactSum invalid;  // samples whose loss is not a finite number
};
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
// Throws DivergedError when a loss was not a number. Not a number itself when only costs count, and
// where there are no samples.
Quality quality_of(const Context& context, const EvaluationSums& sums, size_t samples);
// The same where arithmetic was done.
Quality quality_of(const EvaluationSums& sums, size_t samples, bool classification);

// What ends a run whose loss, or its gradient, is not a finite number in this step (from 0 on; the
// message counts from 1).
DivergedError diverged_at(uint64_t step);

// Charges what an optimizer step on these parameters costs.
void charge_update(Context& context, const Layout& layout);

// True when `quality` meets the task's target.
bool reached(const TaskConfig& task, bool classification, double quality);

}  // namespace tutti

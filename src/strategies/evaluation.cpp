#include "strategies/evaluation.h"

#include <algorithm>
#include <cmath>

#include "collectives/all_reduce.h"
#include "core/error.h"
#include "strategies/compute.h"

namespace tutti {
namespace {

// Losses travel as 128-bit integers so that their sum does not depend on who adds which shares.
// This leaves room for losses up to kMostLoss, which squared errors of large targets come near.
constexpr double kLossScale = 1 << 24;
constexpr double kMostLoss = 1e25;

}  // namespace

void add_evaluation(EvaluationSums& sums, const Evaluation& chunk) {
  if (std::abs(chunk.loss) < kMostLoss)
    sums.loss.value += static_cast<int128_t>(std::nearbyint(chunk.loss * kLossScale));
  else
    sums.invalid.value += static_cast<int128_t>(chunk.count);
  sums.correct.value += static_cast<int128_t>(std::nearbyint(chunk.correct * kLossScale));
}

size_t evaluation_chunks(size_t samples) {
  return (samples + kEvaluationChunk - 1) / kEvaluationChunk;
}

std::span<const uint32_t> samples_of_chunks(std::span<const uint32_t> samples, size_t first,
                                            size_t end) {
  const size_t begin = std::min(samples.size(), first * kEvaluationChunk);
  return samples.subspan(begin, std::min(samples.size(), end * kEvaluationChunk) - begin);
}

EvaluationSums evaluate_chunks(Context& context, std::span<const uint32_t> samples, size_t first,
                               size_t end, size_t stride) {
  PhaseScope scope(context.watch, Phase::kCompute);
  Clock& clock = context.node.clock();
  EvaluationSums sums;
  Batch batch;
  for (size_t chunk = first; chunk < end; chunk += stride) {
    clock.begin_chunk();
    const size_t begin = chunk * kEvaluationChunk;
    const auto part = samples.subspan(begin, std::min(kEvaluationChunk, samples.size() - begin));
    context.arithmetic().perform([&] {
      gather(context, part, batch);
      add_evaluation(sums, context.model.whole().evaluate(batch));
    });
    clock.charge(forward_work(context.model.architecture(), part.size()));
  }
  return sums;
}

void add_among(Context& context, const Group& group, EvaluationSums& sums, Tag tag) {
  const size_t count = sums.bytes().size() / kSumExact.element_bytes;
  const auto sum = make_all_reduce(context.node, &context.watch, tree(group, count), kSumExact);
  sum->start(sums.bytes(), tag);
  sum->finish();
}

Quality quality_of(const Context& context, const EvaluationSums& sums, size_t samples) {
  return quality_of(sums, samples, context.model.architecture().classification,
                    context.arithmetic());
}

Quality quality_of(const EvaluationSums& sums, size_t samples, bool classification,
                   Arithmetic arithmetic) {
  if (samples == 0 || !arithmetic.is_done()) return {NAN, NAN};
  const auto count = static_cast<double>(samples);
  Quality quality{static_cast<double>(sums.loss.value) / kLossScale / count,
                  static_cast<double>(sums.correct.value) / kLossScale / count};
  if (sums.invalid.value > 0)
    throw DivergedError("the loss on validation is not a finite number any more");
  if (!classification) quality.quality = 2 * quality.loss;
  return quality;
}

Quality evaluate_together(Context& context, std::span<const uint32_t> samples, Tag tag) {
  return evaluate_among(context, context.members, samples, tag);
}

Quality evaluate_among(Context& context, std::span<const Rank> members,
                       std::span<const uint32_t> samples, Tag tag) {
  const auto place = std::find(members.begin(), members.end(), context.node.endpoint().rank());
  if (place == members.end()) return {NAN, NAN};
  const auto me = static_cast<size_t>(place - members.begin());
  EvaluationSums sums =
      evaluate_chunks(context, samples, me, evaluation_chunks(samples.size()), members.size());
  if (members.size() > 1)
    add_among(context, {.ranks = {members.begin(), members.end()}, .index = me, .racks = {}}, sums,
              tag);
  return quality_of(context, sums, samples.size());
}

}  // namespace tutti

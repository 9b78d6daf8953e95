#include "strategies/compute.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "collectives/all_reduce.h"
#include "collectives/exact_sum.h"
#include "core/bytes.h"
#include "core/error.h"

namespace tutti {
namespace {

// Small enough that every worker of a big cluster gets a share, large enough to compute well.
constexpr size_t kEvaluationChunk = 64;

// Losses travel as 128-bit integers so that their sum does not depend on who adds which shares.
// This leaves room for losses up to kMostLoss, which squared errors of large targets come near.
constexpr double kLossScale = 1 << 24;
constexpr double kMostLoss = 1e25;

}  // namespace

double compute_gradient(Context& context, const Batch& batch, float scale,
                        const Model::Ready& ready) {
  PhaseScope scope(context.watch, Phase::kCompute);
  Clock& clock = context.node.clock();
  if (!clock.simulated()) return context.model.gradient(batch, scale, ready);

  std::vector<Range> ranges;
  const double loss =
      context.model.gradient(batch, scale, [&](Range range) { ranges.push_back(range); });
  const Architecture& architecture = context.model.architecture();
  const auto samples = static_cast<double>(batch.size());
  clock.charge({.flops = samples * architecture.forward_flops(), .memory_bytes = 0});
  for (const Range range : ranges) {
    clock.charge({.flops = samples * architecture.backward_flops(range), .memory_bytes = 0});
    ready(range);
  }
  return loss;
}

Quality evaluate_together(Context& context, std::span<const uint32_t> samples, Tag tag) {
  return evaluate_among(context, context.members, samples, tag);
}

Quality evaluate_among(Context& context, std::span<const Rank> members,
                       std::span<const uint32_t> samples, Tag tag) {
  Node& node = context.node;
  const auto place = std::find(members.begin(), members.end(), node.endpoint().rank());
  if (place == members.end()) return {NAN, NAN};
  const size_t workers = members.size();
  const auto me = static_cast<size_t>(place - members.begin());
  std::array<ExactSum, 3> sums{};  // loss, correct, samples whose loss is not a number
  {
    PhaseScope scope(context.watch, Phase::kCompute);
    Batch batch;
    for (size_t chunk = me; chunk * kEvaluationChunk < samples.size(); chunk += workers) {
      const size_t begin = chunk * kEvaluationChunk;
      const auto part = samples.subspan(begin, std::min(kEvaluationChunk, samples.size() - begin));
      if (!node.clock().cost_only()) {
        context.data.dataset->gather(part, batch);
        const Evaluation result = context.model.evaluate(batch);
        if (std::abs(result.loss) < kMostLoss)
          sums[0].value += static_cast<int128_t>(std::nearbyint(result.loss * kLossScale));
        else
          sums[2].value += static_cast<int128_t>(part.size());
        sums[1].value += static_cast<int128_t>(std::nearbyint(result.correct * kLossScale));
      }
      node.clock().charge(
          {.flops = static_cast<double>(part.size()) * context.model.architecture().forward_flops(),
           .memory_bytes = 0});
    }
  }
  if (workers > 1) {
    const Group group{.ranks = {members.begin(), members.end()}, .index = me, .racks = {}};
    const auto sum = make_all_reduce(node, &context.watch, tree(group, sums.size()), kSumExact);
    sum->start(writable_bytes_of(std::span<ExactSum>(sums)), tag);
    sum->finish();
  }
  if (node.clock().cost_only()) return {NAN, NAN};  // it took its time, but measured nothing
  const auto count = static_cast<double>(std::max<size_t>(1, samples.size()));
  Quality quality{static_cast<double>(sums[0].value) / kLossScale / count,
                  static_cast<double>(sums[1].value) / kLossScale / count};
  if (sums[2].value > 0)
    throw DivergedError("the loss on validation is not a finite number any more");
  if (!context.model.architecture().classification) quality.quality = 2 * quality.loss;
  return quality;
}

void charge_update(Context& context, size_t parameters) {
  // Read gradient, parameter and state; write parameter and state.
  const double passes = 3 + 2.0 * optimizer_slots(context.optimizer);
  context.node.clock().charge(
      {.flops = 0, .memory_bytes = passes * static_cast<double>(parameters) * sizeof(float)});
}

bool reached(const Context& context, double quality) {
  if (context.task.target <= 0) return false;
  return context.model.architecture().classification ? quality >= context.task.target
                                                     : quality <= context.task.target;
}

}  // namespace tutti

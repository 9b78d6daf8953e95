#include "strategies/compute.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "collectives/all_reduce.h"
#include "collectives/exact_sum.h"
#include "core/bytes.h"
#include "core/quality.h"

namespace tutti {
namespace {

// Losses travel as 128-bit integers so that their sum does not depend on who adds which shares.
// This leaves room for losses up to kMostLoss, which squared errors of large targets come near.
constexpr double kLossScale = 1 << 24;
constexpr double kMostLoss = 1e25;

// Layers whose parameters are there are charged together, as when all are.
void charge_forward(Context& context, double samples, LateParameters* late) {
  const Architecture& architecture = context.model.architecture();
  Work work{.flops = 0, .memory_bytes = 0, .passes = 1, .layers = 0};
  const auto charge = [&] {
    if (samples > 0 && (work.passes > 0 || work.layers > 0))
      context.node.clock().charge(std::exchange(work, {}));
  };
  for (const Layer& layer : architecture.layers) {
    if (late && !layer.parameters.empty()) {
      const Range range{architecture.parameters[layer.parameters.front()].range.begin,
                        architecture.parameters[layer.parameters.back()].range.end};
      if (!late->has(range)) {
        charge();
        late->await(range);
      }
    }
    work.flops += samples * layer.flops;
    ++work.layers;
  }
  charge();
}

double gradient_of_late(Context& context, const Batch& batch, float scale,
                        const Model::Ready& ready, LateParameters& late) {
  if (batch.size() == 0) late.await({0, context.model.architecture().parameter_count});
  context.model.whole().before_reading([&](Range range) {
    if (!late.has(range)) late.await(range);
  });
  try {
    const double loss = context.model.whole().gradient(batch, scale, ready);
    context.model.whole().before_reading(nullptr);
    return loss;
  } catch (...) {
    context.model.whole().before_reading(nullptr);
    throw;
  }
}

}  // namespace

Work forward_work(const Architecture& architecture, size_t samples) {
  if (samples == 0) return {};
  return {.flops = static_cast<double>(samples) * architecture.forward_flops(),
          .memory_bytes = 0,
          .passes = 1,
          .layers = static_cast<double>(architecture.layers.size())};
}

Work backward_work(const Architecture& architecture, size_t samples) {
  Work work = forward_work(architecture, samples);
  work.flops *= 2;
  work.passes = 0;
  return work;
}

double compute_gradient(Context& context, const Batch& batch, float scale,
                        const Model::Ready& ready, LateParameters* late) {
  PhaseScope scope(context.watch, Phase::kCompute);
  context.recorder.trained(batch.size());
  Clock& clock = context.node.clock();
  if (!clock.simulated())
    return late ? gradient_of_late(context, batch, scale, ready, *late)
                : context.model.whole().gradient(batch, scale, ready);

  const auto samples = static_cast<double>(batch.size());
  if (late) charge_forward(context, samples, late);
  std::vector<Range> ranges;
  const double loss =
      context.model.whole().gradient(batch, scale, [&](Range range) { ranges.push_back(range); });
  if (!late) charge_forward(context, samples, nullptr);
  const Architecture& architecture = context.model.architecture();
  for (const Range range : ranges) {
    if (samples > 0)
      clock.charge({.flops = samples * architecture.backward_flops(range),
                    .memory_bytes = 0,
                    .passes = 0,
                    .layers = architecture.backward_layers(range)});
    ready(range);
  }
  return loss;
}

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
    if (!clock.cost_only()) {
      context.data.dataset->gather(part, batch);
      add_evaluation(sums, context.model.whole().evaluate(batch));
    }
    clock.charge(forward_work(context.model.architecture(), part.size()));
  }
  return sums;
}

Quality quality_of(const Context& context, const EvaluationSums& sums, size_t samples) {
  if (context.node.clock().cost_only()) return {NAN, NAN};  // it took time, but measured nothing
  return quality_of(sums, samples, context.model.architecture().classification);
}

Quality quality_of(const EvaluationSums& sums, size_t samples, bool classification) {
  if (samples == 0) return {NAN, NAN};
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
  Node& node = context.node;
  const auto place = std::find(members.begin(), members.end(), node.endpoint().rank());
  if (place == members.end()) return {NAN, NAN};
  const auto me = static_cast<size_t>(place - members.begin());
  EvaluationSums sums =
      evaluate_chunks(context, samples, me, evaluation_chunks(samples.size()), members.size());
  if (members.size() > 1) {
    std::array<ExactSum, 3> all{sums.loss, sums.correct, sums.invalid};
    const Group group{.ranks = {members.begin(), members.end()}, .index = me, .racks = {}};
    const auto sum = make_all_reduce(node, &context.watch, tree(group, all.size()), kSumExact);
    sum->start(writable_bytes_of(std::span<ExactSum>(all)), tag);
    sum->finish();
    sums = {all[0], all[1], all[2]};
  }
  return quality_of(context, sums, samples.size());
}

DivergedError diverged_at(uint64_t step) {
  return DivergedError(fmt::format(
      "the loss or its gradient is not a finite number at step {}; try a smaller optimizer.lr",
      step + 1));
}

void charge_update(Context& context, const Layout& layout) {
  const OptimizerCost cost = optimizer_cost(context.optimizer, layout);
  // Read gradient, parameter and state; write parameter and state.
  const double values = 3 * static_cast<double>(layout.size) + 2 * cost.values;
  context.node.clock().charge({.flops = cost.flops, .memory_bytes = values * sizeof(float)});
}

bool reached(const TaskConfig& task, bool classification, double quality) {
  return reaches(quality, task.target, classification);
}

}  // namespace tutti

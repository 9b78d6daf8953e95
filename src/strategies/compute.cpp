#include "strategies/compute.h"

#include <fmt/format.h>

#include <utility>

namespace tutti {
namespace {

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

Batches deal_batches(const Context& context, int64_t workers) {
  return {context.data.splits.train, context.task.partition, workers, context.task.seed,
          context.arithmetic().is_done()};
}

void gather(const Context& context, std::span<const uint32_t> samples, Batch& batch) {
  if (context.arithmetic().is_done())
    context.data.dataset->gather(samples, batch);
  else
    batch.samples.assign(samples.begin(), samples.end());
}

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

DivergedError diverged_at(uint64_t step) {
  return DivergedError(fmt::format(
      "the loss or its gradient is not a finite number at step {}; try a smaller optimizer.lr",
      step + 1));
}

void update_parameters(Context& context, const Layout& layout, Optimizer& optimizer,
                       std::span<float> parameters, std::span<const float> gradient, double rate) {
  context.arithmetic().perform([&] { optimizer.step(parameters, gradient, rate); });
  charge_update(context, layout);
}

void charge_update(Context& context, const Layout& layout) {
  const OptimizerCost cost = optimizer_cost(context.optimizer, layout);
  // Read gradient, parameter and state; write parameter and state.
  const double values = 3 * static_cast<double>(layout.size) + 2 * cost.values;
  context.node.clock().charge({.flops = cost.flops, .memory_bytes = values * sizeof(float)});
}

}  // namespace tutti

#include "strategies/federated_averaging/client_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/random.h"
#include "strategies/averaging.h"
#include "strategies/compute.h"
#include "strategies/parameter_layout.h"

namespace tutti::federated_averaging {

ClientBatches::ClientBatches(std::span<const uint32_t> samples, int64_t batch, int64_t client,
                             uint64_t seed, bool shuffled)
    : samples_(samples),
      batch_(static_cast<size_t>(batch)),
      client_(static_cast<uint32_t>(client)),
      seed_(seed),
      shuffled_(shuffled) {}

int64_t ClientBatches::steps_per_epoch() const {
  return static_cast<int64_t>((samples_.size() + batch_ - 1) / batch_);
}

std::span<const uint32_t> ClientBatches::at(int64_t step) {
  const int64_t epoch = step / steps_per_epoch();
  const auto begin = static_cast<size_t>(step % steps_per_epoch()) * batch_;
  const size_t count = std::min(batch_, samples_.size() - begin);
  if (!shuffled_) return samples_.subspan(begin, count);
  if (epoch != epoch_) {
    epoch_ = epoch;
    order_.assign(samples_.begin(), samples_.end());
    // The same order as that of a worker with a disjoint share of the data (data/batches.h).
    Random(seed_, Stream::kShuffle, static_cast<uint32_t>(epoch), 1 + client_).shuffle(order_);
  }
  return std::span<const uint32_t>(order_).subspan(begin, count);
}

int64_t steps_in_round(const Config& config, size_t samples, int64_t batch) {
  if (config.local_steps > 0) return config.local_steps;
  const auto count = static_cast<int64_t>(samples);
  return config.local_epochs * ((count + batch - 1) / batch);
}

ClientTraining::ClientTraining(Context& context, const Config& config, const ClientSplit& split)
    : context_(context),
      config_(config),
      split_(split),
      trained_(context.model.architecture().trained()),
      batch_size_(batch_of_client(config, context.task, static_cast<int64_t>(split.clients()))) {}

double ClientTraining::step(std::span<const uint32_t> samples, uint64_t number) {
  context_.node.clock().begin_step();
  batch_.step = number;
  gather(context_, samples, batch_);
  return compute_gradient(context_, batch_, 1.0f / static_cast<float>(samples.size()),
                          [](Range) {});
}

// What FedProx and SCAFFOLD add to the gradient; running statistics have none.
void ClientTraining::correct(std::span<const float> start, std::span<const float> correction) {
  const std::span<float> g = context_.model.gradients();
  const std::span<const float> x = context_.model.parameters();
  if (config_.proximal > 0)
    on_vectors(context_, 4, g.size(), [&] {
      const auto mu = static_cast<float>(config_.proximal);
      for (const Range range : trained_)
        for (size_t i = range.begin; i < range.end; ++i) g[i] += mu * (x[i] - start[i]);
    });
  if (!correction.empty())
    on_vectors(context_, 3, g.size(), [&] {
      for (const Range range : trained_)
        for (size_t i = range.begin; i < range.end; ++i) g[i] += correction[i];
    });
}

ClientTraining::Result ClientTraining::train(const Task& task, std::span<const float> start,
                                             std::span<const float> correction) {
  const std::span<float> x = context_.model.parameters();
  on_vectors(context_, 2, x.size(), [&] { std::copy(start.begin(), start.end(), x.begin()); });
  const Layout layout = layout_of(context_.model.architecture());
  const auto optimizer = make_optimizer(context_.optimizer, layout);
  const auto samples = split_.of(static_cast<size_t>(task.client));
  ClientBatches batches(samples, batch_size_, task.client, context_.task.seed,
                        context_.arithmetic().is_done());
  Result result;
  const int64_t all = steps_in_round(config_, samples.size(), batch_size_);
  int64_t steps = all;
  if (task.stamina < 1) {
    steps = static_cast<int64_t>(task.stamina * static_cast<double>(all));
    result.completed = false;
  }
  for (; result.steps < steps; ++result.steps) {
    const int64_t number = task.steps_before + result.steps;
    const auto batch = batches.at(number);
    const double loss = step(batch, static_cast<uint64_t>(number));
    if (!std::isfinite(loss))
      throw DivergedError(
          fmt::format("the loss of client {} is {} in round {}; try a smaller "
                      "optimizer.lr",
                      task.client, loss, task.round));
    result.loss += loss;
    result.samples += static_cast<int64_t>(batch.size());
    correct(start, correction);
    PhaseScope scope(context_.watch, Phase::kAggregate);
    update_parameters(context_, layout, *optimizer, x, context_.model.gradients(), task.rate);
  }
  if (result.samples > 0) result.loss /= static_cast<double>(result.samples);
  return result;
}

void new_control_variate(std::span<const float> correction, std::span<const float> difference,
                         double step_length, std::span<float> control) {
  const auto share = static_cast<float>(1 / step_length);
  for (size_t i = 0; i < control.size(); ++i) control[i] = -correction[i] - share * difference[i];
}

}  // namespace tutti::federated_averaging

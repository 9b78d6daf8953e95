#include "strategies/parameter_server/accrued_gradients.h"

#include <algorithm>

#include "strategies/compute.h"
#include "strategies/parameter_layout.h"

namespace tutti::parameter_server {

AccruedGradients::AccruedGradients(Context& context, const Config& config)
    : context_(context),
      sum_(config.pull_every > 1 ? context.model.parameters().size() : 0),
      layout_(layout_of(context.model.architecture(), {0, context.model.parameters().size()})),
      optimizer_(config.pull_every > 1 ? make_optimizer(context.optimizer, layout_) : nullptr) {}

void AccruedGradients::begin(const Hand& hand, int64_t samples) {
  hand_ = hand;
  steps_ = 1;
  samples_ = samples;
}

void AccruedGradients::add(const Hand& hand, const LocalWorker::Result& result, double rate) {
  const std::span<float> sum = sum_.span();
  const std::span<const float> g = context_.model.gradients();
  context_.arithmetic().perform([&] {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = steps_ > 0 ? sum[i] + g[i] : g[i];
    step_alone(result, rate);
  });
  context_.node.clock().charge(
      {.flops = 0, .memory_bytes = 12.0 * static_cast<double>(sum_.size())});
  charge_update(context_, layout_);
  hand_ = hand;
  ++steps_;
  samples_ += result.samples;
}

void AccruedGradients::describe(Request& push) const {
  push.hand = hand_;
  push.steps = static_cast<int32_t>(steps_);
  push.samples = samples_;
}

// Steps by the worker's own gradient, as the servers will, but the state of the optimizer comes
// from this worker's gradients only. Running statistics follow this worker's samples as if there
// were no others. What is pushed is then its share of their change, and the servers get the mean
// over all workers.
void AccruedGradients::step_alone(const LocalWorker::Result& result, double rate) {
  const std::span<float> g = context_.model.gradients();
  const auto all = static_cast<float>(static_cast<double>(result.count) /
                                      static_cast<double>(std::max<int64_t>(1, result.samples)));
  for (const Parameter& parameter : context_.model.architecture().parameters)
    for (size_t i = parameter.range.begin; parameter.running_rate > 0 && i < parameter.range.end;
         ++i)
      g[i] *= all;
  optimizer_->step(context_.model.parameters(), g, rate);
}

void AccruedGradients::foresee_statistics(Range read) {
  if (sum_.size() == 0 || empty()) return;
  context_.arithmetic().perform([&] {
    const std::span<float> x = context_.model.parameters();
    const auto workers = static_cast<double>(context_.cluster.workers);
    for (const Parameter& parameter : context_.model.architecture().parameters) {
      if (parameter.running_rate == 0) continue;
      const auto factor = static_cast<float>(parameter.running_rate * workers);
      const size_t end = std::min(parameter.range.end, read.end);
      for (size_t i = std::max(parameter.range.begin, read.begin); i < end; ++i)
        x[i] -= factor * sum_.data()[i];
    }
  });
}

}  // namespace tutti::parameter_server

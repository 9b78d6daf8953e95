// Cosine: Loshchilov and Hutter, "SGDR", ICLR 2017. Warm-up and linear scaling: Goyal et al.,
// "Accurate, large minibatch SGD", arXiv:1706.02677. Growing the batch: Smith et al., "Don't decay
// the learning rate, increase the batch size", ICLR 2018.
#include "optimizers/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "optimizers/optimizer.h"

namespace tutti {
namespace {

// How many steps of the schedule lie behind. `epoch` comes from a division: 3 * (1.0 / 3) must
// count as 1, so a little is added.
double steps_behind(double epoch, double step_epochs) {
  return std::floor(epoch / step_epochs + 1e-9);
}

double cosine_share(double epoch, double start, double end, double final_fraction) {
  const double progress = end > start ? std::clamp((epoch - start) / (end - start), 0.0, 1.0) : 1.0;
  return final_fraction + (1 - final_fraction) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

}  // namespace

// Only the keys that the chosen schedule uses, so that a setting that would have no effect is
// refused instead of ignored.
void visit(Visitor& v, ScheduleConfig& c) {
  choice(v, "schedule", c.kind, "how the rate changes; grow_batch raises the global batch instead");
  v.field("warmup_epochs", c.warmup_epochs, kNotNegative,
          "the rate rises linearly from 0 over this many epochs");
  if (c.kind == ScheduleKind::kStep) {
    v.field("step_epochs", c.step_epochs, {1e-6}, "how often the rate falls");
    v.field("step_factor", c.step_factor, kPositive, "the rate is multiplied by this");
  }
  if (c.kind == ScheduleKind::kGrowBatch) {
    v.field("step_epochs", c.step_epochs, {1e-6}, "how often the batch grows");
    v.field("step_factor", c.step_factor, {1e-3, 1}, "the batch is divided by this");
  }
  if (c.kind == ScheduleKind::kCosine)
    v.field("final_fraction", c.final_fraction, kFraction, "the rate ends at this share of lr");
  v.field("base_batch", c.base_batch, kNotNegative,
          "lr is meant for this global batch and scales linearly with the actual one; 0: off");
}

Schedule::Schedule(const OptimizerConfig& config, int64_t global_batch, int64_t epochs)
    : config_(config.schedule),
      lr_(config.lr),
      global_batch_(global_batch),
      end_(static_cast<double>(epochs)) {}

void Schedule::end_at(double epoch) { end_ = std::min(end_, epoch); }

double Schedule::rate(double epoch) const {
  double rate = lr_;
  // The initial batch, also when it grows: growing it at the same rate is what replaces the decay.
  if (config_.base_batch > 0)
    rate *= static_cast<double>(global_batch_) / static_cast<double>(config_.base_batch);
  if (config_.kind == ScheduleKind::kStep)
    rate *= std::pow(config_.step_factor, steps_behind(epoch, config_.step_epochs));
  if (config_.kind == ScheduleKind::kCosine)
    rate *= cosine_share(epoch, config_.warmup_epochs, end_, config_.final_fraction);
  if (epoch < config_.warmup_epochs) rate *= epoch / config_.warmup_epochs;
  return rate;
}

int64_t Schedule::global_batch(int64_t epoch) const {
  if (config_.kind != ScheduleKind::kGrowBatch) return global_batch_;
  const double growth =
      std::pow(config_.step_factor, -steps_behind(static_cast<double>(epoch), config_.step_epochs));
  // No data set has more than 2^32 samples; beyond that a batch is an epoch anyway.
  const double batch = std::min(static_cast<double>(global_batch_) * growth, 0x1p32);
  return static_cast<int64_t>(std::llround(batch));
}

}  // namespace tutti

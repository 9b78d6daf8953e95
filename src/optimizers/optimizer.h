// Optimizers on flat spans: one file each, one method.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/chosen.h"
#include "core/schema.h"
#include "optimizers/layout.h"
#include "optimizers/schedule.h"

namespace tutti {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // One update of `x` by the gradient `g` (same size at each call) at learning rate `lr`.
  virtual void step(std::span<float> x, std::span<const float> g, double lr) = 0;
  // Everything that the next step depends on besides its arguments, for checkpoints: a flat
  // buffer per slot (velocity, mean of squares), each as large as x. Of adam, adamw and lamb the
  // number of steps too. Shampoo's buffers are as large as its matrices.
  virtual std::vector<std::span<float>> state() = 0;
  virtual int64_t steps() const = 0;  // taken so far
  // Goes on after as many steps, when state() was filled in. Most need to know of the state alone.
  virtual void resume(int64_t) {}
};

// What an optimizer needs beyond parameters and gradients.
struct OptimizerCost {
  double values = 0;  // floats that it holds: its state, and scratch space
  double flops = 0;   // of a step, beyond a few for each value
};

// What [optimizer] kind chooses: an update rule with its settings.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  virtual void visit(Visitor&) {}  // its keys below [optimizer]
  // `decay` is the weight decay of a rule that decouples it; others need not look at it.
  virtual std::unique_ptr<Optimizer> make(const Layout& layout, double decay) const = 0;
  // Beyond the buffers of state that its entry tells.
  virtual OptimizerCost extra_cost(const Layout&) const { return {}; }
};

struct OptimizerEntry {
  using Kind = UpdateRule;
  std::string_view name;
  std::string_view summary;
  Cloned<UpdateRule> (*make)();
  double lr = 0.1;         // the rate where a job gives none
  int slots = 0;           // buffers of state, each of the size of the parameters
  bool shaped = false;     // its step depends on tensors: it must have each of them as a whole
  bool decouples = false;  // weight decay shrinks the parameters and passes by the gradient
  // Runs with rules of one family are runs of one task; sgd, momentum and nesterov, which follow
  // the gradient itself, are such a family. Empty: its own.
  std::string_view family = {};
};
const std::vector<OptimizerEntry>& optimizer_catalog();
// Throws ConfigError with the nearest name when there is no such optimizer.
const OptimizerEntry& optimizer_entry(std::string_view name);
std::string_view optimizer_family(std::string_view name);

// [optimizer]
struct OptimizerConfig {
  explicit OptimizerConfig(std::string_view kind = "sgd") : rule(optimizer_entry(kind)) {}
  std::string_view kind() const { return rule.name(); }

  Chosen<OptimizerEntry> rule;
  double lr = rule.entry().lr;
  double weight_decay = 0;  // added to the gradient as decay * x, or decoupled
  double clip_norm = 0;     // gradients with a larger norm are scaled down to it; 0: off
  ScheduleConfig schedule;
};

void visit(Visitor& visitor, OptimizerConfig& config);

// The optimizer of the catalog with weight decay and clipping around it as the settings say, for
// what the layout says is trained. A layout may be a number of values, which is then one vector.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, const Layout& layout);
// Steps the trained tensors of the layout by `inner`, and lets running statistics follow.
std::unique_ptr<Optimizer> with_running_statistics(std::unique_ptr<Optimizer> inner,
                                                   const Layout& layout);
// With weight decay, clipping and running statistics.
OptimizerCost optimizer_cost(const OptimizerConfig& config, const Layout& layout);
// True when a part of the parameters can be updated by itself only if it is made of whole tensors.
bool needs_tensors(const OptimizerConfig& config);

}  // namespace tutti

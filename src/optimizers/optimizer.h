// Optimizers on flat spans: one file each, one method.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/schema.h"
#include "optimizers/layout.h"

namespace tutti {

// [optimizer]
struct OptimizerConfig {
  std::string kind = "sgd";
  double lr = 0.1;
  double momentum = 0.9;  // momentum, nesterov
  double decay = 0.9;     // rmsprop: of the mean of squares
  double beta1 = 0.9;     // adam, adamw, lamb
  double beta2 = 0.999;
  double eps = 1e-8;        // adagrad, rmsprop, adam, adamw, lamb, shampoo
  int64_t root_every = 20;  // shampoo: steps between two computations of the preconditioners
  int64_t largest_dimension = 1024;  // shampoo: beyond this only the diagonal is kept
  double weight_decay = 0;           // added to the gradient as decay * x; adamw, lamb: decoupled
  double clip_norm = 0;              // gradients with a larger norm are scaled down to it; 0: off

  std::string schedule = "constant";  // constant | step | cosine | grow_batch
  double warmup_epochs = 0;           // the rate rises linearly from 0 over this many epochs
  double step_epochs = 1;     // step, grow_batch: how often the rate falls or the batch grows
  double step_factor = 0.5;   // step: times this; grow_batch: the batch is divided by this instead
  double final_fraction = 0;  // cosine: the rate ends at this share of lr
  int64_t base_batch = 0;     // linear scaling: lr is meant for this global batch; 0: off
};

void visit(Visitor& visitor, OptimizerConfig& config);

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

struct OptimizerEntry {
  std::string_view name;
  std::string_view summary;
  int slots;    // buffers of state, each of the size of the parameters
  bool shaped;  // its step depends on tensors: it must have each of them as a whole
  std::unique_ptr<Optimizer> (*make)(const OptimizerConfig&, const Layout&);
};
const std::vector<OptimizerEntry>& optimizer_catalog();

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

// Learning rate and global batch over time.
class Schedule {
 public:
  Schedule(const OptimizerConfig& config, int64_t global_batch, int64_t epochs);
  // Makes the run end before its epochs do: after so many steps over so many samples (0: no limit),
  // or at this epoch. Rates that fall until the end of the run then fall until that point.
  void end_after(int64_t max_steps, size_t samples);
  void end_at(double epoch);
  double rate(double epoch) const;  // `epoch` counts fractions: 1.5 is halfway the second
  int64_t global_batch(int64_t epoch) const;

 private:
  OptimizerConfig config_;
  int64_t global_batch_;
  double end_;  // in epochs
};

}  // namespace tutti

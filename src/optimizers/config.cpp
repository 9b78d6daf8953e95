// The keys of [optimizer]: only those that the chosen kind and schedule use, so that a setting
// that would have no effect is refused instead of ignored.
#include "optimizers/optimizer.h"

namespace tutti {
namespace {

void visit_kind(Visitor& v, OptimizerConfig& c) {
  // Below one, or the means never forget and the corrections divide by zero.
  constexpr Bounds kBelowOne{0, 0.999999999};
  const bool is_adam = c.kind == "adam" || c.kind == "adamw" || c.kind == "lamb";
  if (c.kind == "momentum" || c.kind == "nesterov")
    v.field(
        "momentum", c.momentum, kBelowOne,
        "share of the velocity that is kept; the rate is part of the velocity (v = momentum * v - "
        "lr * g), so a change of the rate takes effect gradually, unlike in PyTorch");
  if (c.kind == "rmsprop")
    v.field("decay", c.decay, kBelowOne, "share of the mean of squares that is kept");
  if (is_adam) {
    v.field("beta1", c.beta1, kBelowOne, "share of the mean that is kept");
    v.field("beta2", c.beta2, kBelowOne, "share of the mean of squares that is kept");
  }
  if (is_adam || c.kind == "adagrad" || c.kind == "rmsprop")
    v.field("eps", c.eps, kPositive, "added to the root of the squares, against division by zero");
  if (c.kind == "shampoo") {
    v.field("eps", c.eps, kPositive, "times the identity: the second moments at the start");
    v.field("root_every", c.root_every, {1, 1e6},
            "steps between two computations of the preconditioners, which cost the cube of a "
            "dimension");
    v.field("largest_dimension", c.largest_dimension, {1, 1e5},
            "longer dimensions of a tensor keep the diagonal of their second moments only");
  }
  v.field("weight_decay", c.weight_decay, kNotNegative,
          c.kind == "adamw" || c.kind == "lamb"
              ? "the parameters shrink by lr times this at each step"
              : "this times the parameters is added to the gradient");
  v.field("clip_norm", c.clip_norm, kNotNegative,
          "gradients with a larger norm are scaled down to it; 0: off");
}

void visit_schedule(Visitor& v, OptimizerConfig& c) {
  v.choice("schedule", c.schedule, {"constant", "step", "cosine", "grow_batch"},
           "how the rate changes; grow_batch raises the global batch instead");
  v.field("warmup_epochs", c.warmup_epochs, kNotNegative,
          "the rate rises linearly from 0 over this many epochs");
  if (c.schedule == "step") {
    v.field("step_epochs", c.step_epochs, {1e-6}, "how often the rate falls");
    v.field("step_factor", c.step_factor, kPositive, "the rate is multiplied by this");
  }
  if (c.schedule == "grow_batch") {
    v.field("step_epochs", c.step_epochs, {1e-6}, "how often the batch grows");
    v.field("step_factor", c.step_factor, {1e-3, 1}, "the batch is divided by this");
  }
  if (c.schedule == "cosine")
    v.field("final_fraction", c.final_fraction, kFraction, "the rate ends at this share of lr");
  v.field("base_batch", c.base_batch, kNotNegative,
          "lr is meant for this global batch and scales linearly with the actual one; 0: off");
}

}  // namespace

void visit(Visitor& v, OptimizerConfig& c) {
  std::vector<std::string_view> names;
  for (const OptimizerEntry& entry : optimizer_catalog()) names.push_back(entry.name);
  v.choice("kind", c.kind, names, "the update rule");
  v.field("lr", c.lr, kPositive, "learning rate");
  visit_kind(v, c);
  visit_schedule(v, c);
}

}  // namespace tutti

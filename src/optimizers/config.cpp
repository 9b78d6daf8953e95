// The keys of [optimizer]: only those that the chosen kind uses, so that a setting that would have
// no effect is refused instead of ignored.
#include "optimizers/optimizer.h"

namespace tutti {

void visit(Visitor& v, OptimizerConfig& c) {
  std::string kind(c.kind());
  v.choice("kind", kind, names_of(optimizer_catalog()), "the update rule");
  c.rule.become(optimizer_entry(kind));
  v.field("lr", c.lr, kPositive, "learning rate");
  c.rule->visit(v);
  v.field("weight_decay", c.weight_decay, kNotNegative,
          c.rule.entry().decouples ? "the parameters shrink by lr times this at each step"
                                   : "this times the parameters is added to the gradient");
  v.field("clip_norm", c.clip_norm, kNotNegative,
          "gradients with a larger norm are scaled down to it; 0: off");
  visit(v, c.schedule);
}

}  // namespace tutti

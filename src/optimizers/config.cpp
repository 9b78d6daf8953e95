// The keys of [optimizer]: only those that the chosen kind uses, so that a setting that would have
// no effect is refused instead of ignored.
#include <fmt/format.h>

#include <functional>
#include <map>

#include "optimizers/optimizer.h"

namespace tutti {
namespace {

// "learning rate; by default 0.1 (sgd, momentum), 0.001 (adam)", from the catalog.
std::string help_on_rate() {
  std::map<double, std::string, std::greater<>> names;
  for (const OptimizerEntry& entry : optimizer_catalog()) {
    std::string& list = names[entry.lr];
    list += fmt::format("{}{}", list.empty() ? "" : ", ", entry.name);
  }
  std::string text;
  for (const auto& [rate, list] : names)
    text += fmt::format("{} {} ({})", text.empty() ? "learning rate; by default" : ",", rate, list);
  return text;
}

}  // namespace

void visit(Visitor& v, OptimizerConfig& c) {
  std::string kind(c.kind());
  v.choice("kind", kind, names_of(optimizer_catalog()), "the update rule");
  const double usual = c.rule.entry().lr;
  c.rule.become(optimizer_entry(kind));
  if (c.lr == usual) c.lr = c.rule.entry().lr;  // it was never set, so it suits the kind
  static const std::string help = help_on_rate();
  v.field("lr", c.lr, kPositive, help.c_str());
  c.rule->visit(v);
  v.field("weight_decay", c.weight_decay, kNotNegative,
          c.rule.entry().decouples ? "the parameters shrink by lr times this at each step"
                                   : "this times the parameters is added to the gradient");
  v.field("clip_norm", c.clip_norm, kNotNegative,
          "gradients with a larger norm are scaled down to it; 0: off");
  visit(v, c.schedule);
}

}  // namespace tutti

// Every optimizer there is. To add one: a file beside this one, and a line here.
#include <fmt/format.h>

#include "core/error.h"
#include "optimizers/adagrad.h"
#include "optimizers/adam.h"
#include "optimizers/adamw.h"
#include "optimizers/decorators.h"
#include "optimizers/lamb.h"
#include "optimizers/momentum.h"
#include "optimizers/nesterov.h"
#include "optimizers/rmsprop.h"
#include "optimizers/sgd.h"
#include "optimizers/shampoo.h"

namespace tutti {
namespace {

template <class Rule>
constexpr auto kRule = with_defaults<UpdateRule, Rule>;

bool decays_gradient(const OptimizerConfig& config) {
  return config.weight_decay > 0 && !config.rule.entry().decouples;
}

}  // namespace

const std::vector<OptimizerEntry>& optimizer_catalog() {
  static const std::vector<OptimizerEntry> catalog = {
      {.name = "sgd", .summary = "x -= lr g", .make = kRule<SgdRule>},
      {.name = "momentum",
       .summary = "v = mu v - lr g; x += v",
       .make = kRule<MomentumRule>,
       .slots = 1,
       .family = "sgd"},
      {.name = "nesterov",
       .summary = "v' = mu v - lr g; x += -mu v + (1+mu) v'",
       .make = kRule<NesterovRule>,
       .slots = 1,
       .family = "sgd"},
      {.name = "adagrad",
       .summary = "c += g^2; x -= lr g / (sqrt(c) + eps)",
       .make = kRule<AdagradRule>,
       .lr = 0.01,
       .slots = 1},
      {.name = "rmsprop",
       .summary = "c = d c + (1-d) g^2; x -= lr g / (sqrt(c) + eps)",
       .make = kRule<RmspropRule>,
       .lr = 0.001,
       .slots = 1},
      {.name = "adam",
       .summary = "means of g and g^2, corrected for their start at zero",
       .make = kRule<AdamRule>,
       .lr = 0.001,
       .slots = 2},
      {.name = "adamw",
       .summary = "Adam with weight decay applied to the parameters directly",
       .make = kRule<AdamwRule>,
       .lr = 0.001,
       .slots = 2,
       .decouples = true},
      {.name = "lamb",
       .summary = "AdamW's direction, each tensor's step as long as lr times the tensor",
       .make = kRule<LambRule>,
       .lr = 0.01,
       .slots = 2,
       .shaped = true,
       .decouples = true},
      {.name = "shampoo",
       .summary = "the gradient times inverse roots of its second moments along each dimension",
       .make = kRule<ShampooRule>,
       .shaped = true},
  };
  return catalog;
}

const OptimizerEntry& optimizer_entry(std::string_view name) {
  if (const OptimizerEntry* entry = find_entry(optimizer_catalog(), name)) return *entry;
  throw ConfigError("optimizer.kind",
                    fmt::format("there is no optimizer '{}'; did you mean '{}'? See `tutti list "
                                "optimizers`",
                                name, nearest(name, names_of(optimizer_catalog()))));
}

std::string_view optimizer_family(std::string_view name) {
  const OptimizerEntry* entry = find_entry(optimizer_catalog(), name);
  return entry && !entry->family.empty() ? entry->family : name;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, const Layout& layout) {
  std::unique_ptr<Optimizer> optimizer = config.rule->make(layout, config.weight_decay);
  if (decays_gradient(config))
    optimizer = with_weight_decay(std::move(optimizer), config.weight_decay, layout.size);
  // Outermost: what is clipped is the gradient of the loss, before weight decay is added.
  if (config.clip_norm > 0)
    optimizer = with_clipping(std::move(optimizer), config.clip_norm, layout.size);
  return with_running_statistics(std::move(optimizer), layout);
}

OptimizerCost optimizer_cost(const OptimizerConfig& config, const Layout& layout) {
  OptimizerCost cost = config.rule->extra_cost(layout);
  const int scratch = (decays_gradient(config) ? 1 : 0) + (config.clip_norm > 0 ? 1 : 0) +
                      (layout.has_statistics() ? 1 : 0);
  cost.values += (config.rule.entry().slots + scratch) * static_cast<double>(layout.size);
  return cost;
}

bool needs_tensors(const OptimizerConfig& config) { return config.rule.entry().shaped; }

}  // namespace tutti

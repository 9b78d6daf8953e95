// Every optimizer there is. To add one: a file beside this one, a line in kinds.h, a line here.
#include <fmt/format.h>

#include "core/error.h"
#include "optimizers/kinds.h"
#include "optimizers/shampoo.h"

namespace tutti {
namespace {

const OptimizerEntry& entry_of(const OptimizerConfig& config) {
  std::vector<std::string_view> names;
  for (const OptimizerEntry& entry : optimizer_catalog()) {
    if (entry.name == config.kind) return entry;
    names.push_back(entry.name);
  }
  throw ConfigError("optimizer.kind",
                    fmt::format("there is no optimizer '{}'; did you mean '{}'? See `tutti list "
                                "optimizers`",
                                config.kind, nearest(config.kind, names)));
}

bool is_decoupled(const OptimizerConfig& config) {
  return config.kind == "adamw" || config.kind == "lamb";
}
bool decays_gradient(const OptimizerConfig& config) {
  return config.weight_decay > 0 && !is_decoupled(config);
}

}  // namespace

const std::vector<OptimizerEntry>& optimizer_catalog() {
  static const std::vector<OptimizerEntry> catalog = {
      {"sgd", "x -= lr g", 0, false, make_sgd},
      {"momentum", "v = mu v - lr g; x += v", 1, false, make_momentum},
      {"nesterov", "v' = mu v - lr g; x += -mu v + (1+mu) v'", 1, false, make_nesterov},
      {"adagrad", "c += g^2; x -= lr g / (sqrt(c) + eps)", 1, false, make_adagrad},
      {"rmsprop", "c = d c + (1-d) g^2; x -= lr g / (sqrt(c) + eps)", 1, false, make_rmsprop},
      {"adam", "means of g and g^2, corrected for their start at zero", 2, false, make_adam},
      {"adamw", "Adam with weight decay applied to the parameters directly", 2, false, make_adamw},
      {"lamb", "AdamW's direction, each tensor's step as long as lr times the tensor", 2, true,
       make_lamb},
      {"shampoo", "the gradient times inverse roots of its second moments along each dimension", 0,
       true, make_shampoo},
  };
  return catalog;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, const Layout& layout) {
  std::unique_ptr<Optimizer> optimizer = entry_of(config).make(config, layout);
  if (decays_gradient(config))
    optimizer = with_weight_decay(std::move(optimizer), config.weight_decay, layout.size);
  // Outermost: what is clipped is the gradient of the loss, before weight decay is added.
  if (config.clip_norm > 0)
    optimizer = with_clipping(std::move(optimizer), config.clip_norm, layout.size);
  return with_running_statistics(std::move(optimizer), layout);
}

OptimizerCost optimizer_cost(const OptimizerConfig& config, const Layout& layout) {
  OptimizerCost cost;
  if (config.kind == "shampoo") cost = shampoo_cost(config, layout);
  const int scratch = (config.kind == "lamb" ? 1 : 0) + (decays_gradient(config) ? 1 : 0) +
                      (config.clip_norm > 0 ? 1 : 0) + (layout.has_statistics() ? 1 : 0);
  cost.values += (entry_of(config).slots + scratch) * static_cast<double>(layout.size);
  return cost;
}

bool needs_tensors(const OptimizerConfig& config) { return entry_of(config).shaped; }

}  // namespace tutti

#include "strategies/early_exit/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "strategies/early_exit/activation_code.h"

namespace tutti {
namespace {

constexpr int64_t kMostTiers = 3;  // device, edge and cloud

void require_size(const char* key, size_t size, int64_t wanted, const char* what) {
  if (size != 0 && size != static_cast<size_t>(wanted))
    throw ConfigError(key, fmt::format("{} has {} entries, but there are {} {}; give one for each, "
                                       "or none for the default",
                                       key, size, wanted, what));
}

}  // namespace

void visit(Visitor& v, EarlyExitConfig& c) {
  v.field("cuts", c.cuts, kNotNegative,
          "the layers that edge and cloud begin with; empty: where a sample that goes all the way "
          "takes the least time");
  v.field("devices", c.devices, kAtLeastOne, "nodes of the first tier");
  choice(v, "views", c.views,
         "what a device sees: whole samples, of which it has a share, or its part of every "
         "sample; with parts an aggregator fuses what the devices say");
  choice(v, "fuse_scores", c.fuse_scores,
         "views = \"parts\": how the scores of the devices become one; concat takes one more "
         "affine layer");
  choice(v, "fuse_features", c.fuse_features,
         "views = \"parts\": how what the devices pass on becomes the input of the next tier");
  v.field("bits", c.bits, {1, 32},
          "of each value that goes on to the next tier: 1, 2, 4, 8, or 32 for floats as they are");
  v.field("exit_weights", c.exit_weights, kNotNegative,
          "of the losses of the exits, from the device on; empty: 1 each");
  v.field("thresholds", c.thresholds, kFraction,
          "a sample leaves where its normalised entropy is below this, one for each exit but the "
          "last; empty: chosen on the validation samples");
  v.field("tolerance", c.tolerance, kFraction,
          "chosen thresholds: accuracy on validation that leaving early may cost");
}

void validate(const EarlyExitConfig& config, const TaskConfig& task, const ClusterConfig& cluster) {
  const auto refuse = [](const char* key, const std::string& reason) {
    throw ConfigError(key, "strategy.kind = \"early_exit\" " + reason);
  };
  if (is_sparse(task.model))
    refuse("strategy.kind",
           fmt::format("cuts a model between its layers, but task.model = \"{}\" has one; use "
                       "lenet, resnet20 or mlp",
                       task.model.kind()));
  if (task.partition != Partition::kGlobal)
    refuse("task.partition",
           fmt::format("sends whole batches through the tiers, but task.partition = \"{}\" deals "
                       "samples to workers; use \"global\"",
                       word_of(task.partition)));
  if (task.deterministic)
    refuse("task.deterministic",
           "does not cut batches into lanes; it gives the same bits on every fabric without "
           "task.deterministic, so set that to false");
  const int64_t tiers = tiers_of(config, cluster);
  const int64_t below = local_nodes(config);
  if (tiers < 2 || tiers > kMostTiers)
    refuse("cluster.workers",
           fmt::format("has two or three tiers, but cluster.workers = {} and strategy.devices = {} "
                       "{}leave {} nodes for edge and cloud; set cluster.workers = {} or {}",
                       cluster.workers, config.devices,
                       sees_parts(config) ? "(with an aggregator) " : "",
                       std::max<int64_t>(0, tiers - 1), below + 1, below + 2));
  if (sees_parts(config) && config.cuts.empty())
    throw ConfigError("strategy.cuts",
                      "strategy.cuts is empty, but with strategy.views = \"parts\" the sizes of "
                      "all layers depend on where those of the devices end; give the layers that "
                      "the further tiers begin with, such as [3] for lenet");
  require_size("strategy.cuts", config.cuts.size(), tiers - 1, "tiers after the first");
  require_size("strategy.exit_weights", config.exit_weights.size(), tiers, "exits");
  require_size("strategy.thresholds", config.thresholds.size(), tiers - 1,
               "exits besides the last");
  if (!config.exit_weights.empty() && config.exit_weights.back() <= 0)
    throw ConfigError("strategy.exit_weights",
                      "strategy.exit_weights ends with 0, so nothing would train the last tier; "
                      "give its exit a positive weight");
  if (!ActivationCode::supports(config.bits))
    throw ConfigError("strategy.bits", fmt::format("strategy.bits = {} is not one of 1, 2, 4, 8 "
                                                   "and 32",
                                                   config.bits));
}

}  // namespace tutti

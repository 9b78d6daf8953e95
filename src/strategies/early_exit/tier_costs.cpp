// Predicts what the nodes of an early-exit network send for a training batch, and what they hold.
#include "collectives/topology.h"
#include "models/stage.h"
#include "strategies/early_exit/tiers.h"
#include "strategies/parameter_layout.h"

namespace tutti {
namespace {

double bytes_of_floats(size_t count) { return static_cast<double>(count * sizeof(float)); }

double share_of(const Tiers& tiers, const PlanInput& input, size_t tier) {
  const int64_t parts = tier == 0 && !tiers.views ? static_cast<int64_t>(tiers.devices) : 1;
  const int64_t samples = (input.task.global_batch + parts - 1) / parts;
  return static_cast<double>(samples);
}

// Counts the scores and their gradients, which devices that see parts and their aggregator
// exchange.
StepCost score_traffic(const Tiers& tiers, const PlanInput& input, Rank rank) {
  if (!tiers.views || tiers.weights[0] == 0 || tiers.tier_of(rank) > 0) return {};
  const double messages = tiers.is_aggregator(rank) ? static_cast<double>(tiers.devices) : 1;
  return {.bytes_sent = messages * share_of(tiers, input, 0) * tiers.score_bytes(),
          .messages = messages};
}

}  // namespace

Layout head_layout(const HeadPlace& head, size_t classes) {
  const size_t weights = head.values * classes, all = head.parameters(classes);
  const auto width = static_cast<int64_t>(classes);
  return {all,
          {{{static_cast<int64_t>(head.values), width}, {0, weights}}, {{width}, {weights, all}}}};
}

StepCost tier_traffic(const Tiers& tiers, const PlanInput& input, Rank rank) {
  const size_t tier = tiers.tier_of(rank);
  const bool last = tier + 1 == tiers.size();
  const double samples = share_of(tiers, input, tier);
  StepCost cost = score_traffic(tiers, input, rank);
  if (!last) {  // the loss of this exit
    cost.bytes_sent += sizeof(double);
    cost.messages += 1;
    if (tiers.is_aggregator(rank)) return cost;
    cost.bytes_sent += samples * static_cast<double>(tiers.codes[tier].sample_bytes());
    cost.messages += 1;
  } else {
    const auto others = static_cast<double>(input.cluster.workers - 1);
    cost.bytes_sent += others * sizeof(double);
    cost.messages += others;
  }
  if (tier > 0) {  // the gradients back
    const double parts = tier == 1 ? static_cast<double>(tiers.devices) : 1;
    cost.bytes_sent +=
        (tiers.views ? parts : 1) * samples * bytes_of_floats(tiers.values[tier - 1]);
    cost.messages += parts;
  } else if (tiers.devices > 1 && !tiers.views) {
    const size_t count = stage_of(input.architecture, tiers.layers[0]).parameter_count +
                         tiers.head_of(rank)->parameters(tiers.classes);
    const Volume volume = volume_sent(
        ring({.ranks = tiers.ranks_of(0), .index = static_cast<size_t>(rank), .racks = {}}, count));
    cost.bytes_sent += bytes_of_floats(volume.elements);
    cost.messages += static_cast<double>(volume.messages);
    cost.extra_memory += bytes_of_floats(count);
  }
  return cost;
}

double tier_memory(const Tiers& tiers, const PlanInput& input, Rank rank) {
  const size_t tier = tiers.tier_of(rank);
  const auto head = tiers.head_of(rank);
  const double samples = share_of(tiers, input, tier);
  double bytes = tier_traffic(tiers, input, rank).extra_memory;
  if (head)
    bytes +=
        2 * bytes_of_floats(head->parameters(tiers.classes)) +
        sizeof(float) * optimizer_cost(input.optimizer, head_layout(*head, tiers.classes)).values;
  // The aggregator holds the scores of all devices and their gradients.
  if (tiers.is_aggregator(rank))
    return bytes + 2 * samples * static_cast<double>(tiers.devices) * tiers.score_bytes();
  const Architecture own = stage_of(input.architecture, tiers.layers_of(rank)[0]);
  bytes += 2 * bytes_of_floats(own.parameter_count) + samples * own.activation_bytes() +
           sizeof(float) * optimizer_cost(input.optimizer, layout_of(own)).values;
  // Buffers hold what comes in and goes out, and the gradients that come back.
  if (tier > 0) bytes += 2 * samples * bytes_of_floats(input_values(own));
  if (tier == 1 && tiers.views)  // the parts before they are fused
    bytes += 2 * samples * static_cast<double>(tiers.devices) * bytes_of_floats(tiers.values[0]);
  if (head) bytes += 3 * samples * bytes_of_floats(tiers.values[tier]);
  if (rank == 0)  // gathers the parameters of all at the end
    bytes += bytes_of_floats(input.architecture.parameter_count - own.parameter_count);
  return bytes;
}

}  // namespace tutti

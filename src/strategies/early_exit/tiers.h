// Who has which layers and exits: an early-exit network's settings, resolved for a model and a
// cluster, and what that costs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/range.h"
#include "strategies/early_exit/activation_code.h"
#include "strategies/early_exit/config.h"
#include "strategies/early_exit/exits.h"
#include "strategies/early_exit/fusion.h"

namespace tutti {

// An affine layer of an exit, and the node that has it.
struct HeadPlace {
  std::string name;
  Rank rank = 0;
  size_t values = 0;    // inputs per sample
  uint32_t number = 0;  // keys its initial parameters

  size_t parameters(size_t classes) const { return (values + 1) * classes; }
};

// Tier 0 is on ranks 0 to devices - 1. Devices that see parts share one exit, on the aggregator,
// which is the next rank. Each tier above has one further rank.
struct Tiers {
  std::vector<Range> layers;    // of each tier; in tier 0, those of the first device
  std::vector<size_t> values;   // floats of a sample that leave a node of each tier but the last
  std::vector<double> weights;  // of the exits' losses
  size_t devices = 1;
  size_t classes = 0;
  size_t raw_bytes = 0;               // of a sample as it is stored
  std::vector<ActivationCode> codes;  // for the output of each tier but the last
  std::optional<Views> views;         // which part of samples each device sees; else all
  Fuse fuse_scores = Fuse::kMax, fuse_features = Fuse::kConcat;
  std::vector<int64_t> features;  // output shape of a device

  size_t size() const { return layers.size(); }
  size_t local_nodes() const { return devices + (views ? 1 : 0); }
  size_t tier_of(Rank rank) const {
    const auto place = static_cast<size_t>(rank);
    return place < local_nodes() ? 0 : place - local_nodes() + 1;
  }
  Rank rank_of(size_t tier) const {  // of the first tier: the first device
    return tier == 0 ? 0 : static_cast<Rank>(local_nodes() + tier - 1);
  }
  Rank cloud() const { return rank_of(size() - 1); }
  bool is_aggregator(Rank rank) const { return views && rank == static_cast<Rank>(devices); }
  // Returns the node that knows the scores of a tier's exit. Devices that see whole samples take
  // turns by chunk.
  Rank exit_rank(size_t tier, size_t chunk) const;
  std::vector<Rank> devices_and_aggregator() const;
  std::vector<Rank> ranks_of(size_t tier) const;  // without the aggregator
  std::vector<Range> layers_of(Rank rank) const;  // empty for the aggregator
  std::vector<HeadPlace> heads() const;           // of all exits, by rank
  std::optional<HeadPlace> head_of(Rank rank) const;
  size_t answer_bytes() const { return classes < 256 ? 1 : 4; }
  double score_bytes() const { return static_cast<double>(classes * sizeof(float)); }
  ExitCosts costs() const;
  // What one sample costs where every one is sent to the cloud as it is stored.
  double cloud_only_bytes() const { return static_cast<double>(raw_bytes); }
};

std::string tier_name(const Tiers& tiers, size_t tier);  // device, edge, cloud

// Returns the layers to train. Devices that see parts each have their own copy of the first ones.
// Throws ConfigError when the model cannot be cut like this.
Architecture arrange_tiers(const EarlyExitConfig& config, const PlanInput& input);
// Expects the plan to have the layers of arrange_tiers().
Tiers place_tiers(const EarlyExitConfig& config, const PlanInput& input);

// Describes the parameters of an exit to an optimizer.
Layout head_layout(const HeadPlace& head, size_t classes);

// What a node sends for a batch of training; what it holds.
StepCost tier_traffic(const Tiers& tiers, const PlanInput& input, Rank rank);
double tier_memory(const Tiers& tiers, const PlanInput& input, Rank rank);
// The plan in words, line by line.
std::vector<std::string> explain_tiers(const Tiers& tiers, const EarlyExitConfig& config,
                                       const PlanInput& input);

}  // namespace tutti

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

// An affine layer of an exit, and who has it.
struct HeadPlace {
  std::string name;
  Rank rank = 0;
  size_t values = 0;    // that it takes of a sample
  uint32_t number = 0;  // keys its initial parameters

  size_t parameters(size_t classes) const { return (values + 1) * classes; }
};

// Tier 0 is on ranks 0 to devices - 1. Devices that see parts share an exit, on the aggregator: the
// next rank. Each tier above is on one further rank.
struct Tiers {
  std::vector<Range> layers;    // of each tier; of the first one, those of the first device
  std::vector<size_t> values;   // floats of a sample that leave a node of each tier but the last
  std::vector<double> weights;  // of the exits' losses
  size_t devices = 1;
  size_t classes = 0;
  size_t raw_bytes = 0;               // of a sample as it is stored
  std::vector<ActivationCode> codes;  // of what a node of each tier but the last passes on
  std::optional<Views> views;         // what each device sees of every sample; none: all of a share
  Fuse fuse_scores = Fuse::kMax, fuse_features = Fuse::kConcat;
  std::vector<int64_t> features;  // shape of what leaves a device

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
  // Who knows what the exit of a tier says. Of devices that see whole samples: of this chunk.
  Rank exit_rank(size_t tier, size_t chunk) const;
  std::vector<Rank> devices_and_aggregator() const;
  std::vector<Rank> ranks_of(size_t tier) const;  // without the aggregator
  std::vector<Range> layers_of(Rank rank) const;  // none of the aggregator
  std::vector<HeadPlace> heads() const;           // one of each, by rank
  std::optional<HeadPlace> head_of(Rank rank) const;
  size_t answer_bytes() const { return classes < 256 ? 1 : 4; }
  double score_bytes() const { return static_cast<double>(classes * sizeof(float)); }
  ExitCosts costs() const;
  // What one sample costs where every one is sent to the cloud as it is stored.
  double cloud_only_bytes() const { return static_cast<double>(raw_bytes); }
};

std::string tier_name(const Tiers& tiers, size_t tier);  // device, edge, cloud

// The layers that are trained: of devices that see parts, each has its own copy of the first ones.
// Throws ConfigError when the model cannot be cut like this.
Architecture arrange_tiers(const EarlyExitConfig& config, const Plan& plan);
// Of the layers as they are arranged.
Tiers place_tiers(const EarlyExitConfig& config, const Plan& plan);

// The parameters of an exit, as an optimizer sees them.
Layout head_layout(const HeadPlace& head, size_t classes);

// What a node sends for a batch of training; what it holds.
StepCost tier_traffic(const Tiers& tiers, const Plan& plan, Rank rank);
double tier_memory(const Tiers& tiers, const Plan& plan, Rank rank);
// The plan in words, line by line.
std::vector<std::string> explain_tiers(const EarlyExitConfig& config, const Plan& plan);

}  // namespace tutti

// Who has which layers and exits: an early-exit network's settings, resolved for a model and a
// cluster, and what that costs.
#pragma once

#include <string>
#include <vector>

#include "core/range.h"
#include "strategies/early_exit/activation_code.h"
#include "strategies/early_exit/config.h"
#include "strategies/early_exit/exits.h"

namespace tutti {

// Tier 0 is on ranks 0 to devices - 1; each tier above on the next rank.
struct Tiers {
  std::vector<Range> layers;    // of each tier
  std::vector<size_t> values;   // floats of a sample that leave each tier but the last
  std::vector<double> weights;  // of the exits' losses
  size_t devices = 1;
  size_t classes = 0;
  size_t raw_bytes = 0;               // of a sample as it is stored
  std::vector<ActivationCode> codes;  // of what each tier but the last passes on

  size_t size() const { return layers.size(); }
  size_t tier_of(Rank rank) const {
    const auto place = static_cast<size_t>(rank);
    return place < devices ? 0 : place - devices + 1;
  }
  Rank rank_of(size_t tier) const {  // of the first tier: the first device
    return tier == 0 ? 0 : static_cast<Rank>(devices + tier - 1);
  }
  Rank cloud() const { return rank_of(size() - 1); }
  std::vector<Rank> ranks_of(size_t tier) const;
  size_t answer_bytes() const { return classes < 256 ? 1 : 4; }
  ExitCosts costs() const;
  // What one sample costs where every one is sent to the cloud as it is stored.
  double cloud_only_bytes() const { return static_cast<double>(raw_bytes); }
};

std::string tier_name(const Tiers& tiers, size_t tier);  // device, edge, cloud

// Throws ConfigError when the model cannot be cut like this.
Tiers place_tiers(const EarlyExitConfig& config, const Plan& plan);

// The parameters of a tier's exit, as an optimizer sees them; none in the cloud.
Layout head_layout(const Tiers& tiers, size_t tier);

// What a node sends for a batch of training; what it holds.
StepCost tier_traffic(const Tiers& tiers, const Plan& plan, Rank rank);
double tier_memory(const Tiers& tiers, const Plan& plan, Rank rank);
// The plan in words, line by line.
std::vector<std::string> explain_tiers(const EarlyExitConfig& config, const Plan& plan);

}  // namespace tutti

// Gossip: workers average with their neighbours alone; nobody ever holds a sum over all.
//
// Synchronous: D-PSGD (Lian et al., "Can decentralized algorithms outperform centralized
// algorithms?", NIPS 2017). Asynchronous: AD-PSGD (Lian et al., ICML 2018).
#pragma once

#include <memory>

#include "strategies/local_training.h"
#include "strategies/strategy.h"

namespace tutti {

enum class GossipExchange { kParameters, kGradients };
constexpr auto words(GossipExchange) { return WordList<2>{"parameters", "gradients"}; }

// The second is D-PSGD as published: parameters travel while the gradient is computed.
enum class GossipOrder { kAdaptThenCombine, kCombineThenAdapt };
constexpr auto words(GossipOrder) {
  return WordList<2>{"adapt_then_combine", "combine_then_adapt"};
}

// [strategy] kind = "gossip"
struct GossipConfig {
  std::string graph = "ring";
  Pace mode = Pace::kLockstep;
  GossipExchange exchange = GossipExchange::kParameters;  // sync
  GossipOrder order = GossipOrder::kAdaptThenCombine;     // sync, parameters
};

std::unique_ptr<Strategy> make_gossip();
std::vector<Variant> gossip_variants();

// One node's part. The second returns who is left in the end.
void gossip_in_lockstep(Context& context, const GossipConfig& config);
std::vector<Rank> gossip_freely(Context& context, const GossipConfig& config);

}  // namespace tutti

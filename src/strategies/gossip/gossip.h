// Gossip: workers average with their neighbours alone; nobody ever holds a sum over all.
//
// Synchronous: D-PSGD (Lian et al., "Can decentralized algorithms outperform centralized
// algorithms?", NIPS 2017). Asynchronous: AD-PSGD (Lian et al., ICML 2018).
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace tutti {

// [strategy] kind = "gossip"
struct GossipConfig {
  std::string graph = "ring";
  std::string mode = "sync";            // sync | async
  std::string exchange = "parameters";  // sync: parameters | gradients
  // sync, parameters: adapt_then_combine | combine_then_adapt. The latter is D-PSGD as published:
  // parameters travel while the gradient is computed.
  std::string order = "adapt_then_combine";
};

std::unique_ptr<Strategy> make_gossip();
std::vector<Variant> gossip_variants();

// One node's part.
void gossip_in_lockstep(Context& context, const GossipConfig& config);
void gossip_freely(Context& context, const GossipConfig& config);

}  // namespace tutti

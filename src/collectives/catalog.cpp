#include <fmt/format.h>

#include "collectives/topology.h"
#include "core/error.h"

namespace tutti {

const std::vector<TopologyEntry>& topology_catalog() {
  static const std::vector<TopologyEntry> entries = {
      {"ring", "reduce-scatter and all-gather around a ring: least bytes, 2(n-1) rounds", "ring",
       ring},
      {"butterfly", "recursive halving and doubling: least bytes, 2 log2(n) rounds", "butterfly",
       butterfly},
      {"tree", "reduce to a root along a binomial tree and broadcast back", "tree", tree},
      {"all_to_all", "everyone sends everything to everyone: one round, most bytes", "all-to-all",
       all_to_all},
      {"hierarchical", "reduce within each rack, ring between racks, broadcast within each rack",
       "hierarchical", hierarchical, /*needs_racks=*/true},
      {"direct", "sum in memory shared by the nodes of one host: no messages", "shared memory",
       nullptr},
  };
  return entries;
}

std::vector<std::string_view> topologies_of_messages() {
  std::vector<std::string_view> names;
  for (const TopologyEntry& entry : topology_catalog())
    if (!entry.in_shared_memory() && !entry.needs_racks) names.push_back(entry.name);
  return names;
}

const TopologyEntry& topology(std::string_view name) {
  for (const TopologyEntry& entry : topology_catalog())
    if (entry.name == name) return entry;
  throw ConfigError("strategy.topology", fmt::format("there is no topology '{}'", name));
}

Volume volume_sent(const Rounds& rounds) {
  Volume volume;
  for (const Round& round : rounds)
    for (const Transfer& send : round.sends) {
      volume.elements += send.range.size();
      ++volume.messages;
    }
  return volume;
}

}  // namespace tutti

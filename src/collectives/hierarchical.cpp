// Two levels: reduce to the first member of each rack, ring between those, broadcast within each
// rack (the three-phase scheme of Jia et al., "Highly scalable deep learning training system with
// mixed-precision", 2018).
//
// A rack's uplink carries what one member sends in a ring over the racks, however many members the
// rack has.
#include <set>

#include "collectives/topology.h"

namespace tutti {
namespace {

void append(Rounds& rounds, Rounds more) {
  for (Round& round : more) rounds.push_back(std::move(round));
}

}  // namespace

Rounds hierarchical(const Group& group, size_t count) {
  Group rack;     // the members of this node's rack
  Group leaders;  // the first member of each rack
  std::set<int> seen;
  const auto rack_at = [&](size_t i) { return group.racks.empty() ? 0 : group.racks[i]; };
  for (size_t i = 0; i < group.size(); ++i) {
    if (seen.insert(rack_at(i)).second) {
      if (i == group.index) leaders.index = leaders.size();
      leaders.ranks.push_back(group.ranks[i]);
    }
    if (rack_at(i) == rack_at(group.index)) {
      if (i == group.index) rack.index = rack.size();
      rack.ranks.push_back(group.ranks[i]);
    }
  }
  Rounds rounds = tree_reduce(rack, count);
  if (rack.index == 0 && count > 0) append(rounds, ring(leaders, count));
  append(rounds, tree_broadcast(rack, count));
  return rounds;
}

}  // namespace tutti

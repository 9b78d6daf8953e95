// Everyone sends its whole buffer to everyone: one round, (n-1) buffers sent by each member.
//
// The lowest latency there is, and the most bytes. Each member adds the contributions in rank
// order, its own included, so that all of them get bitwise the same sum.
#include "collectives/topology.h"

namespace tutti {

Rounds all_to_all(const Group& group, size_t count) {
  if (count == 0 || group.size() == 1) return {};
  Round round{.sends = {}, .receives = {}, .action = Action::kCombineInOrder};
  // Starting with the next rank spreads the load: otherwise all would send to rank 0 first.
  for (size_t k = 1; k < group.size(); ++k)
    round.sends.push_back({group.ranks[(group.index + k) % group.size()], {0, count}});
  for (size_t peer = 0; peer < group.size(); ++peer)
    if (peer != group.index) round.receives.push_back({group.ranks[peer], {0, count}});
  return {std::move(round)};
}

}  // namespace tutti

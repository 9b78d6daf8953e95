// Tree all-reduce: reduce to the first member along a binomial tree, broadcast back the same way
// (Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
// IJHPCA 2005).
//
// 2 ceil(log2 n) rounds; every edge of the tree carries the whole buffer once each way.
#include <algorithm>

#include "collectives/topology.h"

namespace tutti {

Rounds tree_reduce(const Group& group, size_t count) {
  const size_t n = group.size();
  const size_t me = group.index;
  Rounds rounds;
  if (count == 0) return rounds;
  for (size_t distance = 1; distance < n; distance *= 2) {
    if (me & distance) {
      rounds.push_back({.sends = {{group.ranks[me - distance], {0, count}}}, .receives = {}});
      break;
    }
    if (me + distance < n)
      rounds.push_back({.sends = {},
                        .receives = {{group.ranks[me + distance], {0, count}}},
                        .action = Action::kCombine});
  }
  return rounds;
}

// The same edges in the opposite direction and order.
Rounds tree_broadcast(const Group& group, size_t count) {
  Rounds rounds = tree_reduce(group, count);
  std::reverse(rounds.begin(), rounds.end());
  for (Round& round : rounds) {
    std::swap(round.sends, round.receives);
    round.action = Action::kReplace;
  }
  return rounds;
}

Rounds tree(const Group& group, size_t count) {
  Rounds rounds = tree_reduce(group, count);
  for (Round& round : tree_broadcast(group, count)) rounds.push_back(std::move(round));
  return rounds;
}

}  // namespace tutti

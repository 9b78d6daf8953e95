// Ring all-reduce: reduce-scatter, then all-gather, n-1 rounds each (Patarasuk and Yuan,
// "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009).
//
// Each member sends 2(n-1)/n of the buffer, the least possible.
#include "collectives/topology.h"

namespace tutti {

Rounds ring(const Group& group, size_t count) {
  const size_t n = group.size();
  const size_t me = group.index;
  const Rank next = group.ranks[(me + 1) % n];
  const Rank previous = group.ranks[(me + n - 1) % n];
  const auto chunk = [&](size_t index) { return part_of(count, n, index % n); };

  Rounds rounds;
  const auto add = [&](Range sent, Range received, Action action) {
    Round round{.sends = {}, .receives = {}, .action = action};
    if (!sent.empty()) round.sends.push_back({next, sent});
    if (!received.empty()) round.receives.push_back({previous, received});
    rounds.push_back(std::move(round));
  };
  for (size_t k = 0; k + 1 < n; ++k)
    add(chunk(me + n - k), chunk(me + 2 * n - k - 1), Action::kCombine);
  for (size_t k = 0; k + 1 < n; ++k)
    add(chunk(me + 1 + n - k), chunk(me + n - k), Action::kReplace);
  return rounds;
}

}  // namespace tutti

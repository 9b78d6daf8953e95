// Butterfly all-reduce: recursive halving, then recursive doubling (Rabenseifner, "Optimization of
// collective reduction operations", ICCS 2004).
//
// For n = 2^k members each sends 2(n-1)/n of the buffer in 2k rounds. For other n, the first
// 2(n - 2^k) members pair up: one of each pair hands its values to the other, sits out, and gets
// the result at the end.
#include <bit>

#include "collectives/topology.h"

namespace tutti {
namespace {

// The 2^k members that take part in the exchange, as positions in the group.
struct Core {
  size_t size;
  size_t folded;  // pairs at the front, of which the second member takes part
  size_t position(size_t core_index) const {
    return core_index < folded ? 2 * core_index + 1 : core_index + folded;
  }
};

}  // namespace

Rounds butterfly(const Group& group, size_t count) {
  const size_t n = group.size();
  const size_t me = group.index;
  const Core core{std::bit_floor(n), n - std::bit_floor(n)};
  const Range all{0, count};
  Rounds rounds;
  if (count == 0) return rounds;

  if (me < 2 * core.folded && me % 2 == 0) {
    const Rank partner = group.ranks[me + 1];
    rounds.push_back({.sends = {{partner, all}}, .receives = {}});
    rounds.push_back({.sends = {}, .receives = {{partner, all}}});
    return rounds;
  }
  if (me < 2 * core.folded)
    rounds.push_back(
        {.sends = {}, .receives = {{group.ranks[me - 1], all}}, .action = Action::kCombine});

  const size_t index = me < 2 * core.folded ? me / 2 : me - core.folded;
  // Blocks are 1/2^k of the buffer; [begin, end) are the blocks still being reduced here.
  const auto elements = [&](size_t begin, size_t end) {
    return Range{part_of(count, core.size, begin).begin, part_of(count, core.size, end - 1).end};
  };
  const auto add = [&](size_t partner_index, Range sent, Range received, Action action) {
    const Rank partner = group.ranks[core.position(partner_index)];
    Round round{.sends = {}, .receives = {}, .action = action};
    if (!sent.empty()) round.sends.push_back({partner, sent});
    if (!received.empty()) round.receives.push_back({partner, received});
    rounds.push_back(std::move(round));
  };

  size_t begin = 0;
  size_t end = core.size;
  for (size_t distance = core.size / 2; distance > 0; distance /= 2) {
    const size_t middle = begin + (end - begin) / 2;
    const bool upper = (index & distance) != 0;
    const Range low = elements(begin, middle);
    const Range high = elements(middle, end);
    add(index ^ distance, upper ? low : high, upper ? high : low, Action::kCombine);
    (upper ? begin : end) = middle;
  }
  for (size_t distance = 1; distance < core.size; distance *= 2) {
    const bool upper = (index & distance) != 0;
    const size_t sibling_begin = upper ? begin - distance : end;
    add(index ^ distance, elements(begin, end), elements(sibling_begin, sibling_begin + distance),
        Action::kReplace);
    (upper ? begin : end) = upper ? begin - distance : end + distance;
  }

  if (me < 2 * core.folded)
    rounds.push_back({.sends = {{group.ranks[me - 1], all}}, .receives = {}});
  return rounds;
}

}  // namespace tutti

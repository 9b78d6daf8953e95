// A large all-reduce as a sequence of smaller ones.
#include <algorithm>
#include <bit>

#include "collectives/topology.h"

namespace tutti {

Rounds in_blocks(RoundsOf rounds, const Group& group, size_t count, size_t block) {
  Rounds all;
  for (size_t begin = 0; begin < count; begin += block)
    for (Round& round : rounds(group, std::min(block, count - begin))) {
      for (std::vector<Transfer>* transfers : {&round.sends, &round.receives})
        for (Transfer& transfer : *transfers)
          transfer.range = {transfer.range.begin + begin, transfer.range.end + begin};
      all.push_back(std::move(round));
    }
  return all;
}

// Topologies divide by the number of members, by a power of two below it, or by that of racks.
size_t block_unit(const Group& group) {
  const size_t racks =
      group.racks.empty()
          ? 1
          : static_cast<size_t>(*std::max_element(group.racks.begin(), group.racks.end())) + 1;
  return group.size() * std::bit_floor(group.size()) * racks;
}

}  // namespace tutti

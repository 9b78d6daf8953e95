// Who sends what to whom: the rounds of an all-reduce as data, by pure rank arithmetic.
//
// A topology is a function from (group, number of elements) to the rounds of one member. One
// executor (all_reduce.h) runs any of them, and tests compare rounds and bytes with the textbook.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "core/range.h"
#include "fabric/tag.h"

namespace tutti {

struct Transfer {
  Rank peer;
  Range range;  // in elements
};

enum class Action {
  kReplace,         // what arrives replaces what is there
  kCombine,         // what arrives, from one peer, is combined into what is there
  kCombineInOrder,  // all arrivals and this node's own values, in rank order: every node that
                    // receives the same values gets bitwise the same result
};

// Sends read the values from before the round; the next round begins when all of this is done.
struct Round {
  std::vector<Transfer> sends;
  std::vector<Transfer> receives;
  Action action = Action::kReplace;
};
using Rounds = std::vector<Round>;

// The nodes that take part, and which of them this one is.
struct Group {
  std::vector<Rank> ranks;
  size_t index = 0;        // this node's position in ranks
  std::vector<int> racks;  // of each member; empty: all in one
  size_t size() const { return ranks.size(); }
};

Rounds ring(const Group& group, size_t count);
Rounds butterfly(const Group& group, size_t count);
Rounds tree(const Group& group, size_t count);
Rounds all_to_all(const Group& group, size_t count);
Rounds hierarchical(const Group& group, size_t count);

// The two halves of `tree`, for composition.
Rounds tree_reduce(const Group& group, size_t count);     // to the first member
Rounds tree_broadcast(const Group& group, size_t count);  // from the first member

using RoundsOf = Rounds (*)(const Group&, size_t count);

// The same block by block, each finished before the next begins. With blocks of a multiple of
// block_unit() each member sends as much in all as without.
Rounds in_blocks(RoundsOf rounds, const Group& group, size_t count, size_t block);
size_t block_unit(const Group& group);

struct TopologyEntry {
  std::string_view name;
  std::string_view summary;
  std::string_view pattern;  // communication pattern, for the taxonomy
  RoundsOf rounds;           // nullptr: `direct`, which needs no messages
  bool needs_racks = false;

  bool in_shared_memory() const { return rounds == nullptr; }
};
const std::vector<TopologyEntry>& topology_catalog();
// The names of those that any group of nodes can run by messages.
std::vector<std::string_view> topologies_of_messages();
const TopologyEntry& topology(std::string_view name);

// What one member sends in all.
struct Volume {
  size_t elements = 0;
  size_t messages = 0;
};
Volume volume_sent(const Rounds& rounds);

}  // namespace tutti

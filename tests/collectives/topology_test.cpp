// Rounds as data: correct for every group, and exactly as many bytes and rounds as the textbook
// says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <numeric>

#include "collectives/topology.h"

namespace tutti {
namespace {

std::vector<int> racks_for(size_t nodes, size_t racks) {
  std::vector<int> result;
  for (size_t rack = 0; rack < racks; ++rack)
    result.insert(result.end(), part_of(nodes, racks, rack).size(), static_cast<int>(rack));
  return result;
}

Group group_of(size_t nodes, size_t index, size_t racks = 1) {
  Group group{.ranks = {}, .index = index, .racks = racks_for(nodes, racks)};
  for (size_t i = 0; i < nodes; ++i) group.ranks.push_back(static_cast<Rank>(i));
  return group;
}

// Executes the rounds of all members on integers, in memory. Messages between two members are a
// queue, as a fabric delivers them; a schedule that waits for a message nobody sends fails.
class Simulation {
 public:
  Simulation(const TopologyEntry& entry, size_t nodes, size_t count, size_t racks,
             bool blocks = false)
      : data_(nodes, std::vector<int64_t>(count)), round_(nodes, 0), posted_(nodes, false) {
    for (size_t i = 0; i < nodes; ++i) {
      const Group group = group_of(nodes, i, racks);
      rounds_.push_back(blocks ? in_blocks(entry.rounds, group, count, block_unit(group))
                               : entry.rounds(group, count));
      for (size_t k = 0; k < count; ++k) data_[i][k] = static_cast<int64_t>((i + 1) * 1000003 + k);
    }
  }

  // False when nobody can go on although somebody has not finished.
  bool run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t i = 0; i < data_.size(); ++i) progress = advance(i) || progress;
    }
    for (size_t i = 0; i < data_.size(); ++i)
      if (round_[i] < rounds_[i].size()) return false;
    return true;
  }

  const std::vector<std::vector<int64_t>>& data() const { return data_; }
  const Rounds& rounds(size_t i) const { return rounds_[i]; }
  bool all_messages_received() const {
    for (const auto& [key, queue] : messages_)
      if (!queue.empty()) return false;
    return true;
  }

 private:
  bool advance(size_t i) {
    if (round_[i] >= rounds_[i].size()) return false;
    const Round& round = rounds_[i][round_[i]];
    bool progress = false;
    if (!posted_[i]) {
      for (const Transfer& send : round.sends)
        messages_[{i, static_cast<size_t>(send.peer)}].emplace_back(
            data_[i].begin() + static_cast<long>(send.range.begin),
            data_[i].begin() + static_cast<long>(send.range.end));
      posted_[i] = progress = true;
    }
    for (const Transfer& receive : round.receives)
      if (messages_[{static_cast<size_t>(receive.peer), i}].empty()) return progress;
    for (const Transfer& receive : round.receives) {
      auto& queue = messages_[{static_cast<size_t>(receive.peer), i}];
      EXPECT_EQ(queue.front().size(), receive.range.size());
      for (size_t k = 0; k < queue.front().size(); ++k) {
        int64_t& into = data_[i][receive.range.begin + k];
        into = round.action == Action::kReplace ? queue.front()[k] : into + queue.front()[k];
      }
      queue.pop_front();
    }
    ++round_[i];
    posted_[i] = false;
    return true;
  }

  std::vector<Rounds> rounds_;
  std::vector<std::vector<int64_t>> data_;
  std::vector<size_t> round_;
  std::vector<bool> posted_;
  std::map<std::pair<size_t, size_t>, std::deque<std::vector<int64_t>>> messages_;
};

std::vector<size_t> node_counts() {
  std::vector<size_t> counts(16);
  std::iota(counts.begin(), counts.end(), size_t{1});
  counts.push_back(64);
  return counts;
}

class EveryTopology : public testing::TestWithParam<TopologyEntry> {};

TEST_P(EveryTopology, SumsExactlyForEveryGroupAndSize) {
  for (const size_t nodes : node_counts())
    for (const size_t count : {size_t{0}, size_t{1}, nodes - 1, nodes, nodes + 1, size_t{10007}})
      for (const size_t racks : {size_t{1}, size_t{2}, size_t{3}}) {
        if (racks > nodes) continue;
        Simulation simulation(GetParam(), nodes, count, racks);
        ASSERT_TRUE(simulation.run()) << nodes << " nodes, " << count << " elements: stuck";
        EXPECT_TRUE(simulation.all_messages_received());
        const auto factor = static_cast<int64_t>(nodes * (nodes + 1) / 2) * 1000003;
        for (size_t i = 0; i < nodes; ++i)
          for (size_t k = 0; k < count; ++k)
            ASSERT_EQ(simulation.data()[i][k], factor + static_cast<int64_t>(nodes * k))
                << nodes << " nodes, " << count << " elements, node " << i << ", element " << k;
      }
}

std::vector<TopologyEntry> message_topologies() {
  std::vector<TopologyEntry> result;
  for (const TopologyEntry& entry : topology_catalog())
    if (entry.rounds) result.push_back(entry);
  return result;
}

INSTANTIATE_TEST_SUITE_P(Topologies, EveryTopology, testing::ValuesIn(message_topologies()),
                         [](const auto& test) { return std::string(test.param.name); });

// What the textbook says of one member.
struct Textbook {
  size_t elements = 0, messages = 0, rounds = 0;
  friend Textbook operator+(const Textbook& a, const Textbook& b) {
    return {a.elements + b.elements, a.messages + b.messages, a.rounds + b.rounds};
  }
};

void expect_cost(std::string_view name, const Group& group, size_t count, const Textbook& cost) {
  const Rounds rounds = topology(name).rounds(group, count);
  const Volume volume = volume_sent(rounds);
  const std::string where = std::string(name) + ", member " + std::to_string(group.index) + " of " +
                            std::to_string(group.size());
  EXPECT_EQ(volume.elements, cost.elements) << where;
  EXPECT_EQ(volume.messages, cost.messages) << where;
  EXPECT_EQ(rounds.size(), cost.rounds) << where;
}

// Divisible by 1 to 16 and by 64, so that the formulas hold without rounding.
constexpr size_t kCount = 4 * 720720;

Textbook ring_cost(size_t n) { return {2 * (n - 1) * (kCount / n), 2 * (n - 1), 2 * (n - 1)}; }

size_t log2_up(size_t n) { return static_cast<size_t>(std::bit_width(n - 1)); }

// In a binomial tree member i has the children i + 1, i + 2, i + 4, ... below i's own lowest bit
// (the root: all of them), as far as there are members. The buffer goes up over the edge to the
// parent and down over those to the children, in a round of its own each.
Textbook tree_cost(size_t n, size_t i) {
  const size_t lowest_bit = i & (~i + 1);
  const size_t children = log2_up(i == 0 ? n : std::min(lowest_bit, n - i));
  const size_t edges = children + (i == 0 ? 0 : 1);
  return {edges * kCount, edges, 2 * edges};
}

TEST(Formulas, RingSendsTwiceAllButOnePartInTwoTimesAllButOneRounds) {
  for (const size_t n : node_counts())
    for (size_t i = 0; i < n; ++i) expect_cost("ring", group_of(n, i), kCount, ring_cost(n));
}

// Of other numbers than powers of two, those beyond pair up with others at first: one of each pair
// hands its buffer over, sits out, and gets the sum in the end.
TEST(Formulas, ButterflySendsAsLittleInLogarithmicallyManyRounds) {
  for (const size_t n : node_counts())
    for (size_t i = 0; i < n; ++i) {
      const size_t core = std::bit_floor(n);
      const bool paired = i < 2 * (n - core);
      const Textbook exchange = {2 * (core - 1) * (kCount / core), 2 * log2_up(core),
                                 2 * log2_up(core)};
      const Textbook helped = {kCount, 1, 2};
      expect_cost("butterfly", group_of(n, i), kCount,
                  !paired      ? exchange
                  : i % 2 == 0 ? helped
                               : exchange + helped);
    }
}

TEST(Formulas, TreeCarriesTheBufferOnceEachWayOverEveryEdge) {
  for (const size_t n : node_counts()) {
    size_t total = 0, most_rounds = 0;
    for (size_t i = 0; i < n; ++i) {
      expect_cost("tree", group_of(n, i), kCount, tree_cost(n, i));
      total += tree_cost(n, i).elements;
      most_rounds = std::max(most_rounds, tree_cost(n, i).rounds);
    }
    // What is known of the whole holds for the formula above, too.
    EXPECT_EQ(total, 2 * (n - 1) * kCount);
    EXPECT_EQ(most_rounds, 2 * log2_up(n));
  }
}

TEST(Formulas, AllToAllSendsEverythingToEveryoneInOneRound) {
  for (const size_t n : node_counts())
    for (size_t i = 0; i < n; ++i)
      expect_cost("all_to_all", group_of(n, i), kCount,
                  {(n - 1) * kCount, n - 1, n > 1 ? size_t{1} : size_t{0}});
}

// Racks one after the other, and dealt out in turn.
std::vector<std::vector<int>> ways_to_place(size_t nodes, size_t racks) {
  std::vector<int> in_turn;
  for (size_t i = 0; i < nodes; ++i) in_turn.push_back(static_cast<int>(i % racks));
  return {racks_for(nodes, racks), in_turn};
}

void expect_hierarchical_cost(const std::vector<int>& rack_of, size_t racks) {
  std::map<int, size_t> members, seen;
  for (const int rack : rack_of) ++members[rack];
  size_t between = 0;
  for (size_t i = 0; i < rack_of.size(); ++i) {
    Group group = group_of(rack_of.size(), i);
    group.racks = rack_of;
    const size_t within = seen[rack_of[i]]++;
    const Textbook in_rack = tree_cost(members[rack_of[i]], within);
    expect_cost("hierarchical", group, kCount, within == 0 ? in_rack + ring_cost(racks) : in_rack);
    for (const Round& round : topology("hierarchical").rounds(group, kCount))
      for (const Transfer& send : round.sends)
        if (rack_of[i] != rack_of[static_cast<size_t>(send.peer)]) between += send.range.size();
  }
  EXPECT_EQ(between, racks * ring_cost(racks).elements);
}

TEST(Formulas, HierarchicalIsATreeInEachRackAndARingOverTheirFirstMembers) {
  for (const size_t n : node_counts())
    for (size_t racks = 1; racks <= std::min<size_t>(n, 8); ++racks)
      for (const std::vector<int>& rack_of : ways_to_place(n, racks)) {
        SCOPED_TRACE(std::to_string(racks) + " racks of " + std::to_string(n));
        expect_hierarchical_cost(rack_of, racks);
      }
}

// Some whole blocks, and a part of one.
TEST(Blocks, AddUpToTheSameSumsAndVolumes) {
  for (const TopologyEntry& entry : message_topologies())
    for (const size_t n : {1U, 2U, 3U, 4U, 7U, 12U, 16U})
      for (const size_t racks : {1U, 2U, 3U}) {
        if (racks > n) continue;
        const size_t count = 3 * block_unit(group_of(n, 0, racks)) + n + 1;
        Simulation blocks(entry, n, count, racks, true), whole(entry, n, count, racks);
        SCOPED_TRACE(fmt::format("{}, {} nodes in {} racks", entry.name, n, racks));
        ASSERT_TRUE(blocks.run() && whole.run());
        EXPECT_TRUE(blocks.all_messages_received());
        EXPECT_EQ(blocks.data(), whole.data());
        for (size_t i = 0; i < n; ++i) {
          EXPECT_EQ(volume_sent(blocks.rounds(i)).elements, volume_sent(whole.rounds(i)).elements);
          EXPECT_EQ(blocks.rounds(i).size(), 4 * whole.rounds(i).size());
        }
      }
}

TEST(Formulas, NobodySendsToItselfOrSendsNothing) {
  for (const TopologyEntry& entry : message_topologies())
    for (const size_t n : node_counts())
      for (size_t i = 0; i < n; ++i)
        for (const Round& round : entry.rounds(group_of(n, i, std::min<size_t>(n, 2)), 7))
          for (const Transfer& send : round.sends) {
            EXPECT_NE(send.peer, static_cast<Rank>(i));
            EXPECT_FALSE(send.range.empty());
          }
}

}  // namespace
}  // namespace tutti

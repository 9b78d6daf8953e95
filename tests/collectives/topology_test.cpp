// Rounds as data: correct for every group, and exactly as many bytes and rounds as the textbook
// says.
#include <gtest/gtest.h>

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
  Simulation(const TopologyEntry& entry, size_t nodes, size_t count, size_t racks)
      : data_(nodes, std::vector<int64_t>(count)), round_(nodes, 0), posted_(nodes, false) {
    for (size_t i = 0; i < nodes; ++i) {
      rounds_.push_back(entry.rounds(group_of(nodes, i, racks), count));
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

Volume volume(std::string_view name, size_t nodes, size_t index, size_t count, size_t racks = 1) {
  return volume_sent(topology(name).rounds(group_of(nodes, index, racks), count));
}
size_t rounds(std::string_view name, size_t nodes, size_t index, size_t count, size_t racks = 1) {
  return topology(name).rounds(group_of(nodes, index, racks), count).size();
}

// Sizes divisible by all group sizes below, so that the formulas hold without rounding.
constexpr size_t kCount = 720720;

TEST(Formulas, RingSendsTwiceAllButOnePartInTwoTimesAllButOneRounds) {
  for (const size_t n : node_counts()) {
    if (n == 64) continue;
    for (size_t i = 0; i < n; ++i) {
      EXPECT_EQ(volume("ring", n, i, kCount).elements, 2 * (n - 1) * (kCount / n));
      EXPECT_EQ(volume("ring", n, i, kCount).messages, 2 * (n - 1));
      EXPECT_EQ(rounds("ring", n, i, kCount), 2 * (n - 1));
    }
  }
}

TEST(Formulas, ButterflySendsAsLittleInLogarithmicallyManyRounds) {
  for (const size_t n : std::vector<size_t>{1, 2, 4, 8, 16, 64})
    for (size_t i = 0; i < n; ++i) {
      const size_t count = 6400;
      EXPECT_EQ(volume("butterfly", n, i, count).elements, 2 * (n - 1) * (count / n));
      EXPECT_EQ(rounds("butterfly", n, i, count), 2 * static_cast<size_t>(std::bit_width(n) - 1));
    }
}

TEST(Formulas, ButterflyOfAnyNumberAddsTwoRoundsAndOneBufferEachWay) {
  for (const size_t n : std::vector<size_t>{3, 5, 6, 7, 12, 15}) {
    const size_t core = std::bit_floor(n);
    const size_t count = core * 1000;
    for (size_t i = 0; i < n; ++i) {
      const bool sits_out = i < 2 * (n - core) && i % 2 == 0;
      const bool helps = i < 2 * (n - core) && i % 2 == 1;
      const size_t exchange = 2 * (core - 1) * (count / core);
      EXPECT_EQ(volume("butterfly", n, i, count).elements,
                sits_out ? count : exchange + (helps ? count : 0));
      EXPECT_EQ(rounds("butterfly", n, i, count),
                sits_out ? 2 : 2 * static_cast<size_t>(std::bit_width(core) - 1) + (helps ? 2 : 0));
    }
  }
}

TEST(Formulas, TreeCarriesTheBufferOnceEachWayOverEveryEdge) {
  for (const size_t n : node_counts()) {
    size_t total = 0, most_rounds = 0;
    for (size_t i = 0; i < n; ++i) {
      total += volume("tree", n, i, kCount).elements;
      most_rounds = std::max(most_rounds, rounds("tree", n, i, kCount));
    }
    EXPECT_EQ(total, 2 * (n - 1) * kCount);
    const size_t depth = static_cast<size_t>(std::bit_width(n - 1));  // ceil(log2 n)
    EXPECT_LE(most_rounds, 2 * depth);
    EXPECT_EQ(rounds("tree", n, 0, kCount), 2 * depth);
    if (n > 1) {
      EXPECT_EQ(volume("tree", n, 0, kCount).elements, depth * kCount);
      EXPECT_EQ(volume("tree", n, n - 1, kCount).elements > 0, true);
    }
  }
}

TEST(Formulas, AllToAllSendsEverythingToEveryoneInOneRound) {
  for (const size_t n : node_counts())
    for (size_t i = 0; i < n; ++i) {
      EXPECT_EQ(volume("all_to_all", n, i, 100).elements, (n - 1) * 100);
      EXPECT_EQ(rounds("all_to_all", n, i, 100), n > 1 ? 1u : 0u);
    }
}

TEST(Formulas, HierarchicalKeepsAllButARingOverRacksInsideTheRacks) {
  const size_t nodes = 12, racks = 3, count = 900;
  const std::vector<int> rack = racks_for(nodes, racks);
  size_t between = 0;
  for (size_t i = 0; i < nodes; ++i)
    for (const Round& round : topology("hierarchical").rounds(group_of(nodes, i, racks), count))
      for (const Transfer& send : round.sends)
        if (rack[i] != rack[static_cast<size_t>(send.peer)]) between += send.range.size();
  EXPECT_EQ(between, racks * 2 * (racks - 1) * (count / racks));
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

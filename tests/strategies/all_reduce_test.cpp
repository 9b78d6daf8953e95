// All-reduce on real nodes: exact sums on integers for every topology on both fabrics, and the
// traffic that the rounds promise.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "collectives/all_reduce.h"
#include "core/bytes.h"
#include "core/error.h"
#include "fabric/exchange.h"
#include "fabric/outcome.h"
#include "jobs/plugins.h"

namespace tutti {
namespace {

Group group_of(Node& node) {
  Group group{.ranks = {}, .index = static_cast<size_t>(node.endpoint().rank()), .racks = {}};
  for (int rank = 0; rank < node.endpoint().size(); ++rank) {
    group.ranks.push_back(rank);
    group.racks.push_back(rank * 2 / node.endpoint().size());
  }
  return group;
}

// What a node sends in these rounds: all but those of in-order sums travel in pieces.
size_t messages_of(const Rounds& rounds, const Endpoint& endpoint) {
  size_t messages = 0;
  for (const Round& round : rounds)
    for (const Transfer& send : round.sends) {
      const size_t bytes = send.range.size() * sizeof(int64_t);
      const size_t piece = endpoint.piece_bytes(send.peer);
      messages += round.action == Action::kCombineInOrder ? 1 : (bytes + piece - 1) / piece;
    }
  return messages;
}

// Sums integers of every size in turn. The result is empty, or says how many elements were wrong
// and what was sent beyond (or below) what the rounds promise: in shared memory, nothing at all.
std::string sum_all_sizes(Node& node, const TopologyEntry& entry) {
  const auto n = static_cast<size_t>(node.endpoint().size());
  const auto me = static_cast<int64_t>(node.endpoint().rank());
  Window* window = nullptr;
  if (!entry.rounds) window = node.endpoint().open_window(10007 * sizeof(int64_t), 60);
  size_t wrong = 0, promised_bytes = 0, promised_messages = 0;
  uint64_t step = 0;
  const Traffic before = node.endpoint().traffic();
  std::unique_ptr<AllReduce> direct;
  if (window) direct = make_direct_all_reduce(node, nullptr, *window, kSumInt64);
  std::vector<size_t> counts = {0, 1, n - 1, n, n + 1, 10007};
  if (entry.rounds && n <= 6) counts.push_back(300'007);  // in several pieces, and blocks
  for (const size_t count : counts) {
    std::vector<int64_t> own(window ? 0 : count);
    const std::span<int64_t> data =
        window ? values_in<int64_t>(window->of(node.endpoint().rank())).first(count)
               : std::span<int64_t>(own);
    for (size_t k = 0; k < count; ++k) data[k] = (me + 1) * 1000003 + static_cast<int64_t>(k);
    std::unique_ptr<AllReduce> messages;
    if (entry.rounds) {
      const Volume volume = volume_sent(entry.rounds(group_of(node), count));
      Rounds rounds =
          rounds_between(node.endpoint(), entry.rounds, group_of(node), count, sizeof(int64_t));
      promised_bytes += volume.elements * sizeof(int64_t);
      promised_messages += messages_of(rounds, node.endpoint());
      messages = make_all_reduce(node, nullptr, std::move(rounds), kSumInt64);
    }
    AllReduce& sum = window ? *direct : *messages;
    sum.start(writable_bytes_of(data), Tag(Purpose::kGradient, Tag::wrapped(++step)));
    sum.advance();
    sum.finish();
    const auto expected = static_cast<int64_t>(n * (n + 1) / 2) * 1000003;
    for (size_t k = 0; k < count; ++k) wrong += data[k] != expected + static_cast<int64_t>(n * k);
    if (window) {  // nobody writes the next values before everybody has looked at these
      sum.start(writable_bytes_of(data.first(0)), Tag(Purpose::kControl, Tag::wrapped(step)));
      sum.finish();
    }
  }
  const Traffic after = node.endpoint().traffic();
  const uint64_t bytes = after.bytes_sent - before.bytes_sent;
  const uint64_t messages = after.messages_sent - before.messages_sent;
  if (wrong == 0 && bytes == promised_bytes && messages == promised_messages) return "";
  return fmt::format("{}: {} elements wrong, {} bytes of {} in {} messages of {}; ", entry.name,
                     wrong, bytes, promised_bytes, messages, promised_messages);
}

// Every node that sums wrongly, or sends other bytes than the rounds of `what` promise, says so.
void check_sums(const std::string& fabric, const std::vector<TopologyEntry>& what, int nodes) {
  ClusterConfig cluster;
  cluster.fabric = value_of(fabric, cluster.fabric);
  cluster.workers = nodes;
  cluster.timeout_s = 60;
  for (const TopologyEntry& entry : what)
    if (!entry.rounds) cluster.nodes_per_host = nodes;  // shared memory needs a single host
  const auto made =
      make_fabric(cluster, std::vector<std::string>(static_cast<size_t>(nodes), "worker"), 1);
  const std::atomic<bool> never{false};
  const auto outcomes = made->run(
      [&](Node& node) {
        std::string wrong;
        for (const TopologyEntry& entry : what) wrong += sum_all_sizes(node, entry);
        return wrong;
      },
      never);
  ASSERT_EQ(outcomes.size(), static_cast<size_t>(nodes));
  for (const NodeOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.kind, NodeOutcome::Kind::kDone) << outcome.error;
    EXPECT_EQ(outcome.result, "") << nodes << " nodes of " << fabric;
  }
}

class EveryTopology : public testing::TestWithParam<TopologyEntry> {};

TEST_P(EveryTopology, SumsExactlyOnAVirtualCluster) {
  for (const int nodes : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 64})
    check_sums("virtual", {GetParam()}, nodes);
}

INSTANTIATE_TEST_SUITE_P(Topologies, EveryTopology, testing::ValuesIn(topology_catalog()),
                         [](const auto& test) { return std::string(test.param.name); });

// A peer that sends less or more than its part is named, and nothing is written beyond the buffer.
TEST(AllReduce, PartsOfAnotherSizeAreAProtocolError) {
  constexpr size_t kCount = 100;  // between two nodes of a ring half of them travel: 200 bytes
  for (const char* fabric : {"process", "virtual"})
    for (const size_t sent : {size_t{0}, size_t{196}, size_t{204}, size_t{40'000}}) {
      ClusterConfig cluster;
      cluster.fabric = value_of(fabric, cluster.fabric);
      const std::atomic<bool> never{false};
      const auto outcomes =
          make_fabric(cluster, {"worker", "worker"}, 1)
              ->run(
                  [&](Node& node) -> std::string {
                    const Tag tag(Purpose::kGradient, 7);
                    if (node.endpoint().rank() == 1) {
                      const std::vector<std::byte> wrong(sent);
                      send(node, 0, tag, wrong);
                      std::vector<std::byte> right(kCount / 2 * sizeof(float));
                      receive(node, 0, tag, right);
                      return "";
                    }
                    std::vector<float> guarded(kCount + 2, 1);
                    const auto sum =
                        make_all_reduce(node, nullptr, ring(group_of(node), kCount), kSumFloat);
                    try {
                      sum->start(writable_bytes_of(std::span(guarded).subspan(1, kCount)), tag);
                      sum->finish();
                    } catch (const FabricError& error) {
                      if (guarded.front() != 1 || guarded.back() != 1)
                        return "written beyond its buffer";
                      return error.kind() == FabricError::Kind::kProtocol && error.peer() == 1
                                 ? std::string("refused: ") + error.what()
                                 : error.what();
                    }
                    return "taken";
                  },
                  never);
      EXPECT_EQ(outcomes[0].result.find("refused: rank 1 sent " + std::to_string(sent) + " bytes"),
                0U)
          << fabric << ", " << sent << " bytes: " << outcomes[0].result << outcomes[0].error;
    }
}

// One topology after the other in the same processes: starting them takes longer than all sums.
TEST(EveryTopologyInTurn, SumsExactlyInProcesses) {
  for (int nodes = 1; nodes <= 16; ++nodes) check_sums("process", topology_catalog(), nodes);
}

}  // namespace
}  // namespace tutti

// Which other nodes of a cluster are tried.
#include "testbed/node_sets.h"

#include <gtest/gtest.h>

#include "testbed/clusters.h"

namespace tutti {
namespace {

using Nodes = std::vector<int64_t>;

std::vector<Nodes> nodes_of(const ClusterConfig& cluster) {
  std::vector<Nodes> all;
  for (const NodeSet& set : node_sets(cluster)) all.push_back(set.nodes);
  return all;
}

TEST(NodeSets, HalveWhatIsEven) {
  ClusterConfig cluster;
  cluster.fabric = FabricKind::kVirtual;
  cluster.workers = 8;
  EXPECT_EQ(nodes_of(cluster), (std::vector<Nodes>{{0, 1, 2, 3}, {0, 1}, {0}}));
  cluster.workers = 1;
  EXPECT_TRUE(node_sets(cluster).empty());
}

TEST(NodeSets, LeaveOutTheSlow) {
  const ClusterConfig cluster = load_cluster("heterogeneous");
  EXPECT_EQ(nodes_of(cluster), (std::vector<Nodes>{{0, 1, 2, 3}, {0, 1, 2, 3, 4, 5}}));
  for (const NodeSet& set : node_sets(cluster)) EXPECT_TRUE(set.fastest);
}

// A node that is always three times slower is left out like one with a slow processor.
TEST(NodeSets, LeaveOutWhoIsAlwaysLate) {
  EXPECT_EQ(nodes_of(load_cluster("stragglers")), (std::vector<Nodes>{{0, 1, 2, 3, 4, 5, 6}}));
}

TEST(NodeSets, AreFewWhereEveryNodeDiffers) {
  ClusterConfig cluster;
  cluster.fabric = FabricKind::kVirtual;
  cluster.workers = 100;
  for (int i = 0; i < 100; ++i) cluster.speed_factors.push_back(1 - i * 0.005);
  EXPECT_LE(node_sets(cluster).size(), 8u);
}

TEST(NodeSets, KeepWhatConcernsTheirNodes) {
  ClusterConfig cluster;
  cluster.fabric = FabricKind::kVirtual;
  cluster.workers = 4;
  cluster.speed_factors = {0.5, 1, 0.5, 1};
  cluster.memory_factors = {1, 2, 3, 4};
  cluster.thread_counts = {1, 1, 2, 1};
  StragglerConfig random, late;
  random.kind = StragglerKind::kRandom;
  random.node = 3;
  late.kind = StragglerKind::kPause;
  late.node = 0;
  cluster.stragglers = {random, late};
  FaultConfig fault;
  fault.nodes = {2, 3};
  cluster.faults = {fault};
  const ClusterConfig kept = with_nodes(cluster, {.nodes = {1, 3}, .fastest = true});
  EXPECT_EQ(kept.workers, 2);
  EXPECT_EQ(kept.speed_factors, (std::vector<double>{1, 1}));
  EXPECT_EQ(kept.memory_factors, (std::vector<double>{2, 4}));
  EXPECT_EQ(kept.thread_counts, (std::vector<int64_t>{1, 1}));
  ASSERT_EQ(kept.stragglers.size(), 1u);
  EXPECT_EQ(kept.stragglers[0].node, 1);
  ASSERT_EQ(kept.faults.size(), 1u);
  EXPECT_EQ(kept.faults[0].nodes, (std::vector<int64_t>{1}));
}

}  // namespace
}  // namespace tutti

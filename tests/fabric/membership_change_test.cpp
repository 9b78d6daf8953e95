// Settings of a node follow it to its new rank.
#include "fabric/membership_change.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace tutti {
namespace {

ClusterConfig uneven_cluster() {
  ClusterConfig cluster;
  cluster.fabric = FabricKind::kVirtual;
  cluster.workers = 4;
  cluster.speed_factors = {1, 0.5, 0.25, 0.125};
  cluster.memory_factors = {1, 2, 3, 4};
  cluster.thread_counts = {1, 2, 3, 4};
  cluster.threads = 8;
  return cluster;
}

TEST(ChangedCluster, KeepsWhatIsSaidOfEachNode) {
  const ClusterConfig cluster = changed_cluster(uneven_cluster(), {.leave = {2, 0}, .come = 1}, 4);
  EXPECT_EQ(cluster.workers, 3);
  EXPECT_EQ(cluster.speed_factors, (std::vector<double>{0.5, 0.125, 1}));
  EXPECT_EQ(cluster.memory_factors, (std::vector<double>{2, 4, 1}));
  EXPECT_EQ(cluster.thread_counts, (std::vector<int64_t>{2, 4, 8}));
  EXPECT_TRUE(changed_cluster(ClusterConfig{}, {.leave = {1}}, 2).speed_factors.empty());
}

// Ranks 0 to 3 are workers, 4 and 5 have another role.
TEST(ChangedCluster, LetsStragglersAndFaultsFollowNodesOfAnyRole) {
  ClusterConfig before = uneven_cluster();
  for (const int64_t node : {-1, 0, 1, 3, 5}) before.stragglers.push_back({.node = node});
  before.faults = {{.nodes = {1}}, {.nodes = {0, 3, 4}}, {.nodes = {5}}};
  const ClusterConfig cluster = changed_cluster(before, {.leave = {1, 4}, .come = 2}, 6);
  std::vector<int64_t> slow;
  for (const StragglerConfig& each : cluster.stragglers) slow.push_back(each.node);
  EXPECT_EQ(slow, (std::vector<int64_t>{-1, 0, 2, 5}));
  ASSERT_EQ(cluster.faults.size(), 2u);
  EXPECT_EQ(cluster.faults[0].nodes, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(cluster.faults[1].nodes, (std::vector<int64_t>{5}));
}

TEST(ChangedCluster, LetsKindsFollowTheirHosts) {
  ClusterConfig before = uneven_cluster();
  before.host_kinds = {{.name = "a", .hosts = {1, 4}}, {.name = "b", .hosts = {0}}};
  ClusterConfig cluster = changed_cluster(before, {.leave = {0}, .come = 1}, 6);
  ASSERT_EQ(cluster.host_kinds.size(), 1u) << "the only one of b has left";
  EXPECT_EQ(cluster.host_kinds[0].hosts, (std::vector<int64_t>{0, 4}));
  before = uneven_cluster();
  before.nodes_per_host = 2;
  before.host_kinds = {{.name = "a", .hosts = {1}}};
  cluster = changed_cluster(before, {.leave = {0, 1}}, 4);
  ASSERT_EQ(cluster.host_kinds.size(), 1u);
  EXPECT_EQ(cluster.host_kinds[0].hosts, (std::vector<int64_t>{0}));
}

TEST(ChangedCluster, HasTheRacksThatStillHaveNodes) {
  ClusterConfig before;
  before.workers = 6;
  before.racks = 3;
  EXPECT_EQ(changed_cluster(before, {.leave = {0}}, 6).racks, 3);
  EXPECT_EQ(changed_cluster(before, {.leave = {0, 1}}, 6).racks, 2);
  before.nodes_per_host = 2;  // two nodes that stay share a host afterwards
  EXPECT_EQ(changed_cluster(before, {.leave = {1, 2, 4, 5}}, 6).racks, 1);
}

TEST(ChangedCluster, CountsGuestsThatStayOrCome) {
  ClusterConfig before;  // processes
  before.workers = 4;
  before.remote = 2;
  EXPECT_EQ(changed_cluster(before, {.leave = {0, 3}}, 4).remote, 1);
  EXPECT_EQ(changed_cluster(before, {.come = 3}, 4).remote, 5);
  before.remote = 0;
  before.fabric = FabricKind::kVirtual;
  EXPECT_EQ(changed_cluster(before, {.come = 3}, 4).remote, 0);
}

TEST(ChangedCluster, NeedsAWorker) {
  const MembershipChange nobody{.leave = {0, 1}};
  EXPECT_THROW(changed_cluster(ClusterConfig{}, nobody, 3), ConfigError);
  EXPECT_EQ(changed_cluster(ClusterConfig{}, {.leave = {0, 1}, .come = 1}, 3).workers, 1);
}

TEST(RanksAfter, KeepTheOrderWithNewcomersAfterTheWorkers) {
  using Ranks = std::vector<std::optional<Rank>>;
  EXPECT_EQ(ranks_after({.leave = {1}, .come = 2}, 3, 5), (Ranks{0, std::nullopt, 1, 4, 5}));
  EXPECT_EQ(ranks_after({.leave = {3}}, 3, 5), (Ranks{0, 1, 2, std::nullopt, 3}));
}

TEST(MembershipChange, IsSaidInWords) {
  EXPECT_EQ(in_words({.leave = {5}}), "without rank 5");
  EXPECT_EQ(in_words({.leave = {5, 0, 2}, .come = 2}),
            "without ranks 0, 2 and 5, with 2 more workers");
  EXPECT_EQ(in_words({.come = 1}), "with 1 more worker");
}

}  // namespace
}  // namespace tutti

// What becomes of a cluster's description when nodes leave and others come: settings of a node
// follow it to its new rank.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fabric/cluster.h"
#include "fabric/node.h"

namespace tutti {

// Which nodes of a plan leave, by their ranks in it, and how many workers come. Who stays keeps its
// order, newcomers are the last of the workers.
struct MembershipChange {
  std::vector<Rank> leave = {};
  int64_t come = 0;

  bool leaves(Rank rank) const;
};

// "without ranks 2 and 5, with 1 more worker"
std::string in_words(const MembershipChange& change);

// The ranks that the nodes of a plan have in the next one; none where a node leaves. Ranks below
// `workers` are those of workers.
std::vector<std::optional<Rank>> ranks_after(const MembershipChange& change, int64_t workers,
                                             int64_t nodes);

// The cluster of the nodes that are there afterwards. Newcomers are as fast and large as the
// cluster says of all, and join from elsewhere where nodes are processes. Hosts and racks of one
// size are filled in the order of the ranks: a description has no others. Throws ConfigError when
// no worker is left.
ClusterConfig changed_cluster(const ClusterConfig& cluster, const MembershipChange& change,
                              int64_t nodes);

}  // namespace tutti

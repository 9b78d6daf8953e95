// Other nodes of a cluster to try a strategy on: fewer of them, and without the slow ones.
#pragma once

#include <string>
#include <vector>

#include "fabric/cluster.h"

namespace tutti {

struct NodeSet {
  std::vector<int64_t> nodes;  // of the cluster, in their order
  bool fastest = false;        // they are faster than those that are left out
};

// Where nodes differ: those that are at least as fast as one another, from each speed up. Where
// they do not: a half of them, a quarter and so on.
std::vector<NodeSet> node_sets(const ClusterConfig& cluster);

// "on 4 nodes", "on the 4 fastest nodes".
std::string in_words(const NodeSet& set);

// The cluster with these nodes alone.
ClusterConfig with_nodes(const ClusterConfig& cluster, const NodeSet& set);

}  // namespace tutti

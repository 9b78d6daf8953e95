#include "testbed/node_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

namespace tutti {
namespace {

constexpr size_t kMostSpeeds = 8;  // that are looked at, where nodes have more of them

// Of a worker, with what always slows it down.
double lasting_speed(const ClusterConfig& cluster, int64_t node) {
  double speed = speed_of(cluster, node);
  for (const StragglerConfig& straggler : cluster.stragglers)
    if (straggler.kind == StragglerKind::kConstant &&
        (straggler.node < 0 || straggler.node == node))
      speed /= straggler.factor;
  return speed;
}

}  // namespace

std::vector<NodeSet> node_sets(const ClusterConfig& cluster) {
  std::vector<NodeSet> sets;
  std::set<double, std::greater<>> speeds;
  for (int64_t node = 0; node < cluster.workers; ++node)
    speeds.insert(lasting_speed(cluster, node));
  // Who has which machine and which rack is plain only where each has one of its own.
  const bool separable = cluster.nodes_per_host == 1 && cluster.racks == 1;
  if (speeds.size() > 1 && separable) {
    size_t at = 0;
    const size_t every = (speeds.size() + kMostSpeeds - 1) / kMostSpeeds;
    for (const double least : speeds) {
      if (at++ % every != 0) continue;
      NodeSet set{.nodes = {}, .fastest = true};
      for (int64_t node = 0; node < cluster.workers; ++node)
        if (lasting_speed(cluster, node) >= least) set.nodes.push_back(node);
      if (std::ssize(set.nodes) < cluster.workers) sets.push_back(std::move(set));
    }
    return sets;
  }
  for (int64_t workers = cluster.workers / 2; workers >= 1; workers /= 2) {
    NodeSet set;
    for (int64_t node = 0; node < workers; ++node) set.nodes.push_back(node);
    sets.push_back(std::move(set));
  }
  return sets;
}

std::string in_words(const NodeSet& set) {
  const auto count = std::ssize(set.nodes);
  if (set.fastest)
    return count == 1 ? "on the fastest node" : fmt::format("on the {} fastest nodes", count);
  return fmt::format("on {} node{}", count, count == 1 ? "" : "s");
}

ClusterConfig with_nodes(const ClusterConfig& cluster, const NodeSet& set) {
  ClusterConfig result = cluster;
  if (set.fastest)
    keep_nodes(result, set.nodes);
  else
    shrink_cluster(result, std::ssize(set.nodes));
  return result;
}

}  // namespace tutti

#include "fabric/membership_change.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "fabric/capabilities.h"

namespace tutti {
namespace {

using NextRanks = std::vector<std::optional<Rank>>;

// The entries of the workers that stay, and `preset` for each newcomer.
template <class Value>
void keep_entries(std::vector<Value>& entries, const NextRanks& next, int64_t workers,
                  Value preset) {
  if (entries.empty()) return;
  std::vector<Value> kept;
  for (size_t rank = 0; rank < entries.size() && rank < next.size(); ++rank)
    if (next[rank]) kept.push_back(entries[rank]);
  kept.resize(static_cast<size_t>(workers), preset);
  entries = std::move(kept);
}

// Stragglers and faults name nodes of any role.
void follow_nodes(ClusterConfig& cluster, const NextRanks& next) {
  const auto after = [&](int64_t node) {
    return node < std::ssize(next) ? next[static_cast<size_t>(node)] : std::nullopt;
  };
  std::erase_if(cluster.stragglers,
                [&](const StragglerConfig& each) { return each.node >= 0 && !after(each.node); });
  for (StragglerConfig& each : cluster.stragglers)
    if (each.node >= 0) each.node = *after(each.node);
  for (FaultConfig& fault : cluster.faults) {
    std::erase_if(fault.nodes, [&](int64_t node) { return !after(node); });
    for (int64_t& node : fault.nodes) node = *after(node);
  }
  std::erase_if(cluster.faults, [](const FaultConfig& fault) { return fault.nodes.empty(); });
}

// A host is of its kind as long as one of its nodes stays. Where nodes of two hosts share one
// afterwards, it is that of the first.
void follow_hosts(ClusterConfig& cluster, const ClusterConfig& before, const NextRanks& next) {
  for (HostKind& kind : cluster.host_kinds) kind.hosts.clear();
  for (Rank rank = 0; rank < std::ssize(next); ++rank) {
    const auto place = next[static_cast<size_t>(rank)];
    if (!place) continue;
    const int64_t host = host_of(cluster, *place), host_before = host_of(before, rank);
    for (size_t i = 0; i < before.host_kinds.size(); ++i) {
      const std::vector<int64_t>& hosts = before.host_kinds[i].hosts;
      const bool was = std::find(hosts.begin(), hosts.end(), host_before) != hosts.end();
      if (was && !kind_of_host(cluster, host)) cluster.host_kinds[i].hosts.push_back(host);
    }
  }
  std::erase_if(cluster.host_kinds, [](const HostKind& kind) { return kind.hosts.empty(); });
}

int64_t racks_left(const ClusterConfig& before, const NextRanks& next) {
  std::set<int64_t> racks;
  for (Rank rank = 0; rank < before.workers; ++rank)
    if (next[static_cast<size_t>(rank)]) racks.insert(rack_of(before, rank));
  return std::max<int64_t>(1, std::ssize(racks));
}

}  // namespace

bool MembershipChange::leaves(Rank rank) const {
  return std::find(leave.begin(), leave.end(), rank) != leave.end();
}

std::string in_words(const MembershipChange& change) {
  std::string words;
  if (!change.leave.empty()) {
    std::vector<Rank> ranks = change.leave;
    std::sort(ranks.begin(), ranks.end());
    const Rank last = ranks.back();
    ranks.pop_back();
    words = ranks.empty() ? fmt::format("without rank {}", last)
                          : fmt::format("without ranks {} and {}", fmt::join(ranks, ", "), last);
  }
  if (change.come > 0)
    words += fmt::format("{}with {} more worker{}", words.empty() ? "" : ", ", change.come,
                         change.come == 1 ? "" : "s");
  return words;
}

std::vector<std::optional<Rank>> ranks_after(const MembershipChange& change, int64_t workers,
                                             int64_t nodes) {
  NextRanks next(static_cast<size_t>(nodes));
  Rank position = 0;
  for (Rank rank = 0; rank < nodes; ++rank) {
    if (rank == workers) position += static_cast<Rank>(change.come);
    if (!change.leaves(rank)) next[static_cast<size_t>(rank)] = position++;
  }
  return next;
}

ClusterConfig changed_cluster(const ClusterConfig& before, const MembershipChange& change,
                              int64_t nodes) {
  const NextRanks next = ranks_after(change, before.workers, nodes);
  const auto stays = [&](Rank rank) { return next[static_cast<size_t>(rank)].has_value(); };
  ClusterConfig cluster = before;
  cluster.workers = change.come;
  cluster.remote = 0;
  for (Rank rank = 0; rank < before.workers; ++rank) {
    if (!stays(rank)) continue;
    ++cluster.workers;
    if (rank >= before.workers - before.remote) ++cluster.remote;
  }
  if (cluster.workers == 0)
    throw ConfigError("cluster.workers", "no worker is left; at least one must stay, or come");
  if (!capabilities_of(before).declared_hosts) cluster.remote += change.come;
  keep_entries(cluster.speed_factors, next, cluster.workers, 1.0);
  keep_entries(cluster.memory_factors, next, cluster.workers, 1.0);
  keep_entries(cluster.thread_counts, next, cluster.workers, before.threads);
  cluster.racks = std::min(racks_left(before, next), hosts_of(cluster, cluster.workers));
  follow_nodes(cluster, next);
  follow_hosts(cluster, before, next);
  return cluster;
}

}  // namespace tutti

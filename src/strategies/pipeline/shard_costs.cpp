#include "strategies/pipeline/shard_costs.h"

#include "fabric/capabilities.h"
#include "models/shard.h"
#include "models/split_loss.h"
#include "models/stage.h"
#include "strategies/pipeline/stage_costs.h"

namespace tutti {
namespace {

Group group_of(const Placement& placement, size_t shard) {
  Group group{.ranks = {}, .index = shard, .racks = {}};
  for (size_t s = 0; s < placement.shards; ++s) group.ranks.push_back(static_cast<Rank>(s));
  return group;
}

// What a round of the first shard takes. Shards are neighbours in rank, some of them on a host, and
// all send at once; but around a ring only one of a host sends to the next host.
class RoundTime {
 public:
  RoundTime(const Placement& placement, const PipelineConfig& config, const ClusterConfig& cluster)
      : cluster_(cluster),
        is_ring_(topology(config.shard_topology).rounds == ring),
        on_host_(static_cast<size_t>(cluster.nodes_per_host)),
        is_local_(!capabilities_of(cluster).declared_hosts ||
                  (on_host_ >= placement.shards && on_host_ % placement.shards == 0)),
        link_(shared_bandwidth(cluster, is_ring_ ? 1 : placement.shards)),
        memory_(capabilities_of(cluster).declared_hosts ? host_bandwidth_of(cluster) : link_) {}

  double operator()(const Round& round) const {
    double seconds = 0;
    bool crosses = false;
    for (const Transfer& send : round.sends) {
      const bool local = is_local_ || (!is_ring_ && static_cast<size_t>(send.peer) < on_host_);
      crosses = crosses || !local;
      seconds += bytes_in(send) / (local ? memory_ : link_);
    }
    if (round.action != Action::kReplace)
      for (const Transfer& receive : round.receives)
        seconds += 3 * bytes_in(receive) / cluster_.memory_bandwidth;
    return seconds + (crosses ? 2 * cluster_.latency_s : 0);
  }

 private:
  static double bytes_in(const Transfer& transfer) {
    return static_cast<double>(transfer.range.size() * sizeof(float));
  }

  const ClusterConfig& cluster_;
  bool is_ring_;
  size_t on_host_;
  bool is_local_;
  double link_, memory_;  // bytes per second
};

}  // namespace

Architecture part_of_stage(const Placement& placement, const Architecture& whole, size_t stage,
                           size_t shard) {
  return shard_of(stage_of(whole, placement.stages[stage]), shard, placement.shards);
}

std::vector<size_t> forward_exchanges(const Architecture& shard, size_t samples) {
  std::vector<size_t> exchanges;
  if (shard.shard.count == 1) return exchanges;
  for (const ShardSum& sum : forward_sums(shard)) exchanges.push_back(samples * sum.values);
  if (!shard.shard.splits_scores()) return exchanges;
  const size_t rows = samples * static_cast<size_t>(shard.positions);
  exchanges.push_back(split_loss_maximum(rows));
  exchanges.push_back(split_loss_sum(rows));
  if (shard.l2 > 0) exchanges.push_back(1);
  return exchanges;
}

std::vector<size_t> backward_exchanges(const Architecture& shard, size_t samples) {
  std::vector<size_t> exchanges;
  if (shard.shard.count == 1) return exchanges;
  for (const ShardSum& sum : backward_sums(shard)) exchanges.push_back(samples * sum.values);
  return exchanges;
}

double exchange_seconds(const Placement& placement, const PipelineConfig& config,
                        const ClusterConfig& cluster, const std::vector<size_t>& exchanges) {
  const RoundTime time(placement, config, cluster);
  const Group group = group_of(placement, 0);
  double seconds = 0;
  for (const size_t values : exchanges)
    for (const Round& round : topology(config.shard_topology).rounds(group, values))
      seconds += time(round);
  return seconds;
}

Volume exchange_volume(const Placement& placement, const PipelineConfig& config,
                       const Architecture& shard, size_t samples) {
  Volume volume;
  const Group group = group_of(placement, shard.shard.index);
  const auto add = [&](const std::vector<size_t>& exchanges) {
    for (const size_t values : exchanges) {
      const Volume own = volume_sent(topology(config.shard_topology).rounds(group, values));
      volume.elements += own.elements;
      volume.messages += own.messages;
    }
  };
  if (samples == 0) return volume;
  const std::vector<size_t> forward = forward_exchanges(shard, samples);
  add(forward);
  if (config.recompute) add(forward);
  add(backward_exchanges(shard, samples));
  return volume;
}

}  // namespace tutti

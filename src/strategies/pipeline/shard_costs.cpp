#include "strategies/pipeline/shard_costs.h"

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

// Neighbours in rank: on one host where it has room for all of a stage's.
bool share_a_host(const Placement& placement, const ClusterConfig& cluster) {
  const auto on_host = static_cast<size_t>(cluster.nodes_per_host);
  return on_host >= placement.shards && on_host % placement.shards == 0;
}

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
  const bool local = cluster.fabric != "virtual" || share_a_host(placement, cluster);
  const double bandwidth =
      cluster.fabric == "virtual" && local ? cluster.memory_bandwidth : link_bandwidth(cluster);
  const double latency_s = local ? 0 : 2 * cluster.latency_s;
  const Group group = group_of(placement, 0);
  double seconds = 0;
  for (const size_t values : exchanges)
    for (const Round& round : topology(config.shard_topology).rounds(group, values)) {
      double sent = 0, added = 0;
      for (const Transfer& send : round.sends) sent += static_cast<double>(send.range.size());
      if (round.action != Action::kReplace)
        for (const Transfer& receive : round.receives)
          added += static_cast<double>(receive.range.size());
      seconds += latency_s + sizeof(float) * sent / bandwidth +
                 3 * sizeof(float) * added / cluster.memory_bandwidth;
    }
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

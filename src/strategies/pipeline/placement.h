// Which node has which layers, and how a batch is cut: a pipeline's settings, resolved for a model
// and a cluster.
#pragma once

#include <vector>

#include "collectives/topology.h"
#include "core/range.h"
#include "strategies/pipeline/config.h"
#include "strategies/pipeline/schedule.h"

namespace tutti {

// Replica r has the ranks from r * nodes * shards on; its stage s is on the (s mod nodes)th group
// of shards among them, which are neighbours; or on as many nodes as it has copies.
struct Placement {
  std::vector<Range> stages;  // their layers
  size_t nodes = 1;           // of a replica; where stages have shards, groups of nodes
  size_t replicas = 1;
  size_t shards = 1;         // of each stage
  size_t micro_batches = 1;  // of a global batch
  PipelineSchedule schedule = PipelineSchedule::k1f1b;
  std::vector<size_t> copies = {};  // nodes of each stage within a replica; empty: one

  size_t replica_of(Rank rank) const { return static_cast<size_t>(rank) / (nodes * shards); }
  size_t node_of(Rank rank) const { return static_cast<size_t>(rank) / shards % nodes; }
  size_t shard_of(Rank rank) const { return static_cast<size_t>(rank) % shards; }
  Rank rank_of(size_t replica, size_t stage, size_t shard, size_t copy = 0) const {
    return static_cast<Rank>((replica * nodes + shape(replica).node_of(stage, copy)) * shards +
                             shard);
  }
  // All with the same parameters, in all replicas; `me` is one of them, or it does not matter who.
  Group holders(size_t stage, size_t shard, Rank me = 0) const;
  // Those of a global batch that go through this replica.
  Range micro_batches_of(size_t replica) const { return part_of(micro_batches, replicas, replica); }
  bool asynchronous() const { return schedule == PipelineSchedule::kAsynchronous; }
  // Asynchronously whole batches follow each other: as many are under way as there are nodes.
  PipelineShape shape(size_t replica) const {
    return {.nodes = nodes,
            .stages = stages.size(),
            .micro_batches = asynchronous() ? nodes : micro_batches_of(replica).size(),
            .copies = copies};
  }
};

// The stages whose parameters are on a server, where the settings ask for servers.
inline Range stages_on_server(const Placement& placement, const PipelineConfig& config,
                              size_t server) {
  return part_of(placement.stages.size(), static_cast<size_t>(config.servers), server);
}

// The ways to share the workers between stages, replicas and shards that the settings allow, with
// what a step takes and the node with the most memory needs: what "auto" chooses from.
struct Alternative {
  Placement placement;
  double step_s = 0;
  double memory_bytes = 0;
  bool fits = true;  // cluster.memory
};
Alternative estimated(Placement placement, const PipelineConfig& config, const PlanInput& input);
std::vector<Alternative> alternatives(const PipelineConfig& config, const PlanInput& input);

// Throws ConfigError when the model cannot be cut like this, naming what would do.
Placement place_stages(const PipelineConfig& config, const PlanInput& input);

}  // namespace tutti

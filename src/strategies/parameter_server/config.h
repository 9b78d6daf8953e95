// [strategy] kind = "parameter_server": what can be set.
#pragma once

#include <cstdint>
#include <string>

#include "core/schema.h"
#include "fabric/cluster.h"
#include "optimizers/optimizer.h"
#include "strategies/task.h"

namespace tutti::parameter_server {

// How far workers may be apart.
enum class ConsistencyKind { kBsp, kAsp, kSsp, kAdaptive, kWaiting, kBackup };
constexpr auto words(ConsistencyKind) {
  return WordList<6>{"bsp", "asp", "ssp", "adaptive", "waiting", "backup"};
}

// What a forward pass waits for.
enum class PullKind { kLayers, kWhole };
constexpr auto words(PullKind) { return WordList<2>{"layers", "whole"}; }

// How the learning rate follows delays.
enum class RateKind { kConstant, kStaleness, kWorker, kDynamic };
constexpr auto words(RateKind) {
  return WordList<4>{"constant", "staleness", "worker", "dynamic"};
}

// Where parameters are cut into shards: anywhere, or at borders of layers.
enum class ShardKind { kAuto, kBytes, kLayers };
constexpr auto words(ShardKind) { return WordList<3>{"auto", "bytes", "layers"}; }

struct Config {
  int64_t servers = 1;
  bool automatic = false;  // the planner chooses how many servers, and where
  ConsistencyKind consistency = ConsistencyKind::kBsp;
  int64_t staleness = 3;   // ssp: the bound; adaptive, waiting: where it starts
  int64_t executions = 2;  // adaptive, waiting: steps of the slowest between synchronisations
  int64_t backup = 1;      // backup: late workers that a step does without
  int64_t pull_every = 1;  // steps between two pulls (DistBelief's nfetch)
  PullKind pull = PullKind::kLayers;
  bool prefetch = false;  // ask for the next parameters while this gradient is computed
  RateKind rate = RateKind::kConstant;
  double update_weight = 0;  // constant: weight of a local update (ConSGD); 0: 1 / workers
  ShardKind shards = ShardKind::kAuto;
  int64_t replicas = 0;  // servers besides its own that hold a copy of each shard
  int64_t shards_per_server =
      0;                       // 0: 1, and with replicas 2, so that a lost server's can be shared
  int64_t snapshot_every = 0;  // updates between two snapshots; 0: none
  std::string resume = {};     // a run's folder: go on from its last snapshot
};

// Whether the parameters of a pull may come while the forward pass goes on. With copies of shards a
// server that takes over may answer with newer ones, which must not mix.
inline bool pulls_layers(const Config& config) {
  return config.pull == PullKind::kLayers && config.replicas == 0;
}

// Whether the next pull is asked for before the push of this step, whose gradient it then lacks.
inline bool asks_ahead_of_push(const Config& config) {
  return config.prefetch && config.pull_every == 1;
}

// Returns whether bounds follow the reports of workers to the coordinator.
inline bool follows_reports(const Config& config) {
  return config.consistency == ConsistencyKind::kAdaptive ||
         config.consistency == ConsistencyKind::kWaiting;
}

// Of all servers.
int64_t shards_of(const Config& config);

void visit(Visitor& visitor, Config& config);
// Throws ConfigError naming the settings that contradict each other.
void validate(const Config& config, const TaskConfig& task, const ClusterConfig& cluster);
void validate(const Config& config, const OptimizerConfig& optimizer);

}  // namespace tutti::parameter_server

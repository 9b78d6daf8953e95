// How many servers, and where: what `servers = "auto"` chooses from.
//
// A plan has the machines of the cluster and no more: servers share them with workers, or take some
// of them, and then there are fewer workers.
#pragma once

#include <string>
#include <vector>

#include "strategies/parameter_server/config.h"
#include "strategies/strategy.h"

namespace tutti::parameter_server {

struct ServerPlan {
  int64_t servers = 1;
  bool colocated = false;  // on the workers' machines; else each on one of its own
  int64_t workers = 1;     // that are left
  double step_s = 0;       // about what a global batch takes
};

// What a global batch takes about, with the servers that `config` names on the cluster of `plan`:
// computing with the fixed costs of passes and layers, what the fullest link carries in and out
// while layers are pulled and pushed, and the servers' updates by memory bandwidth. Of a virtual
// cluster.
double step_seconds(const Config& config, const Plan& plan);

// All plans on the machines of the cluster, the fastest first. Among equals the fewest servers.
std::vector<ServerPlan> server_plans(const Config& config, const Plan& plan);

// Makes it the plan of a job.
void take_plan(const ServerPlan& chosen, Config& config, ClusterConfig& cluster);

// "8 servers, on the workers' machines"
std::string in_words(const Config& config, const ClusterConfig& cluster);

}  // namespace tutti::parameter_server

// Plans how many servers there are, and where, for `servers = "auto"`.
//
// A plan uses the machines of the cluster and no more. Servers share them with workers, or take
// some of them, and then there are fewer workers.
#pragma once

#include <string>
#include <vector>

#include "strategies/parameter_server/config.h"
#include "strategies/strategy.h"

namespace tutti::parameter_server {

struct ServerPlan {
  int64_t servers = 1;
  bool colocated = false;  // on the workers' machines; else each on its own
  int64_t workers = 1;     // left after servers took machines
  double step_s = 0;       // estimated time of a global batch
};

// Estimates the time of a global batch on a virtual cluster, with the servers that `config` names
// on the cluster of `plan`. It counts computing with the fixed costs of passes and layers, the
// traffic of the fullest link in and out while layers are pulled and pushed, and the servers'
// updates by memory bandwidth.
double step_seconds(const Config& config, const PlanInput& input);

// Returns all plans for the machines of the cluster, the fastest first. Among equals the one with
// the fewest servers comes first.
std::vector<ServerPlan> server_plans(const Config& config, const PlanInput& input);

// Writes the chosen plan into the settings of a job.
void take_plan(const ServerPlan& chosen, Config& config, ClusterConfig& cluster);

// Returns a text such as "8 servers, on the workers' machines".
std::string in_words(const Config& config, const ClusterConfig& cluster);

}  // namespace tutti::parameter_server

// What workers and servers send and hold, as far as it can be known before a run.
#pragma once

#include "strategies/parameter_server/config.h"
#include "strategies/planning.h"

namespace tutti::parameter_server {

// Rows of a sparse model that a worker's part of a batch touches, on average or at most.
double touched_rows(const PlanInput& input);

struct StepCosts {
  StepCost worker, server;  // of one of each; of the server with the largest shard
};
StepCosts step_costs(const PlanInput& input, const Config& config,
                     const std::vector<Range>& shards);

double worker_memory_bytes(const PlanInput& input, const Config& config,
                           const std::vector<Range>& shards);
double server_memory_bytes(const PlanInput& input, const Config& config,
                           const std::vector<Range>& shards);

}  // namespace tutti::parameter_server

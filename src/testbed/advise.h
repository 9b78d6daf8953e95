// Which architecture for this task on that cluster? Answered here, without owning the cluster:
// the model's cost is measured, each architecture's messages are simulated at full scale, and the
// steps to the target come from real gradients.
#pragma once

#include <atomic>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "testbed/learning.h"

namespace tutti {

struct AdviseOptions {
  std::string cluster;                  // a file, or a recipe's name
  std::vector<std::string> strategies;  // variants; empty: all
  int seeds = 0;  // 0: 3 for what an equivalence class computes once, 1 for each other strategy
  bool quick = false;     // rank only: no what-ifs
  bool declared = false;  // the cluster's speed is what this model gets: do not measure
};

// Returns the advice as JSON. Its "job" is the best choice as a job file, with the whole cluster
// and the costs that the advice was found with, so `train` and `compare` take the same virtual
// times. Throws ConfigError when the job has no target to reach.
nlohmann::json advise(const Job& job, const AdviseOptions& options, const Announce& announce,
                      const std::atomic<bool>& stop);

// For people.
std::string advice_text(const nlohmann::json& advice);

}  // namespace tutti

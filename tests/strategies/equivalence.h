// What runs are compared with, and where they run: shared by the tests of equivalence.
#pragma once

#include <algorithm>
#include <string>

#include "tests/support/jobs.h"

namespace tutti::testing_support {

inline const Settings kDeterministic = {"task.deterministic=true"};

inline Settings on(const std::string& fabric, int workers) {
  Settings settings = {"cluster.fabric=" + fabric, "cluster.workers=" + std::to_string(workers)};
  // Shared memory needs one host, racks need several nodes: both hold on every fabric this way.
  if (fabric == "virtual") settings.push_back("cluster.nodes_per_host=" + std::to_string(workers));
  return settings;
}

// Where a strategy runs. Hierarchical needs racks, racks need hosts, and shared memory needs a
// single one.
inline Settings network_for(const Settings& strategy, const std::string& fabric, int workers) {
  Settings settings = on(fabric, workers);
  const std::string hierarchical = "strategy.topology=hierarchical";
  if (std::find(strategy.begin(), strategy.end(), hierarchical) != strategy.end()) {
    settings.push_back("cluster.racks=2");
    if (fabric == "virtual") settings.push_back("cluster.nodes_per_host=1");
  }
  return settings;
}

inline Settings solo() { return {"strategy.kind=solo", "cluster.workers=1"}; }

}  // namespace tutti::testing_support

// Benchmarks of what happens between hosts that are network namespaces of this machine: nodes of
// the process fabric, one on each host, and whole trainings by `tutti train` and `tutti join`.
#pragma once

#include <atomic>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/process/namespaced_network.h"

namespace tutti {

// Half the time of a small message from rank 0 to rank 1 and back, median. Collective.
double one_way_s(Node& node);

// The results of all nodes. Throws when one of them failed; `what` names the benchmark.
std::vector<nlohmann::json> results_of(const std::vector<NodeOutcome>& outcomes,
                                       const std::string& what, const std::atomic<bool>& stop);

// Runs `body`, which returns JSON, on a node of each of the first `nodes` hosts.
std::vector<nlohmann::json> run_between_hosts(const process::NamespacedNetwork& network, int nodes,
                                              const Fabric::Body& body,
                                              const std::atomic<bool>& stop);

// A training whose launcher is on host 0.
struct HostsTraining {
  std::string job;          // the file
  std::string run;          // the folder that it makes
  std::vector<int> guests;  // the hosts of those that join, in the order of their ranks
};

// Trains, and returns what run.json has. Throws Error when the run does not end well.
nlohmann::json train_between_hosts(const process::NamespacedNetwork& network,
                                   const HostsTraining& training, const std::atomic<bool>& stop);

}  // namespace tutti

// The `virtual` fabric: nodes are SimGrid actors, payloads are real, time is simulated.
//
// The same configuration, roles and seed give the same virtual times and results, always. run()
// simulates in a child process, so what a body changes outside of files reaches the caller only by
// the string that it returns, as on any other fabric. This header includes nothing of SimGrid.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fabric/cluster.h"
#include "fabric/fabric.h"

namespace tutti {

// roles.size() is the number of nodes: the workers of `config` first.
std::unique_ptr<Fabric> make_virtual_fabric(const ClusterConfig& config,
                                            std::vector<std::string> roles, uint64_t seed);

// Crashes the calling node, as a fault would, and restarts it after so long (0: never).
[[noreturn]] void crash_virtual_node(Node& node, double restart_s = 0);

using MakeFabric = std::unique_ptr<Fabric> (*)(const ClusterConfig&, std::vector<std::string> roles,
                                               uint64_t seed);

}  // namespace tutti

// What libtutti_virtual.so exports: a MakeFabric.
extern "C" const tutti::MakeFabric tutti_make_virtual_fabric;

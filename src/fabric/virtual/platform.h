// The simulated machines and wires of a cluster.
#pragma once

#include <simgrid/forward.h>

#include <vector>

#include "fabric/cluster.h"
#include "fabric/fabric.h"
#include "fabric/tag.h"

namespace tutti::simulation {

// Makes the simulator's engine, of which a process has one.
void start_simulator(NetworkSolver solver);

class Platform {
 public:
  Platform(const ClusterConfig& config, int nodes);

  simgrid::s4u::Host* host_of(Rank rank) const { return hosts_[host_index(rank)]; }
  bool same_host(Rank a, Rank b) const { return host_index(a) == host_index(b); }
  bool one_host() const { return hosts_.size() == 1; }
  // Occupies one node's share of its host for so long; the calling actor waits.
  void compute(Rank rank, double seconds) const;
  // Counts bytes that travel, for the energy of the links on their way.
  void carry(Rank from, Rank to, size_t bytes);
  ClusterEnergy energy() const;  // until now

 private:
  size_t host_index(Rank rank) const { return static_cast<size_t>(tutti::host_of(config_, rank)); }
  ClusterConfig config_;
  std::vector<simgrid::s4u::Host*> hosts_;
  simgrid::s4u::Host* shared_ = nullptr;  // computes for all of them, where cores are shared
  std::vector<int64_t> rack_of_host_;
  // The seconds that one direction of each link was busy: of every host and of every rack.
  std::vector<double> link_seconds_, uplink_seconds_;
};

}  // namespace tutti::simulation

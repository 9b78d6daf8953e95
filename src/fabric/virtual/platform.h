// The simulated machines and wires of a cluster.
#pragma once

#include <simgrid/forward.h>

#include <vector>

#include "fabric/cluster.h"
#include "fabric/tag.h"
#include "fabric/virtual/network.h"

namespace tutti::simulation {

// Makes the simulator's engine, of which a process has one.
void start_simulator();

class Platform {
 public:
  Platform(const ClusterConfig& config, int nodes);

  simgrid::s4u::Host* host_of(Rank rank) const { return hosts_[host_index(rank)]; }
  bool same_host(Rank a, Rank b) const { return host_index(a) == host_index(b); }
  bool one_host() const { return hosts_.size() == 1; }
  Network& network() { return network_; }
  const Network& network() const { return network_; }
  Network::Route route(Rank from, Rank to) const;
  // Occupies one node's share of its host for so long; the calling actor waits.
  void compute(Rank rank, double seconds) const;
  // Counts bytes that travel, for the energy of the links on their way.
  void carry(Rank from, Rank to, size_t bytes);
  double joules() const;  // of all hosts and links until now

 private:
  // Split duplex: sending does not slow down receiving.
  struct Wire {
    Network::Link up, down;
  };
  Wire make_wire(double bandwidth);
  size_t host_index(Rank rank) const { return static_cast<size_t>(tutti::host_of(config_, rank)); }
  ClusterConfig config_;
  std::vector<simgrid::s4u::Host*> hosts_;
  std::vector<int64_t> rack_of_host_;
  Network network_;
  std::vector<Wire> host_wires_, rack_wires_;
  double link_seconds_ = 0;  // that one direction of some link was busy, summed over all
};

}  // namespace tutti::simulation

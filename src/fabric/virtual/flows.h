// Flows move bytes from host to host, and a solver shares the links among them: SimGrid, or the
// solver of our own (`cluster.network_solver`).
//
// No actor waits for a flow. What has ended is kept until it is collected, and the world is told to
// look; that is what lets hundreds of thousands of messages simulate in seconds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "fabric/tag.h"
#include "fabric/virtual/agenda.h"
#include "fabric/virtual/platform.h"

namespace tutti::simulation {

class Flows {
 public:
  virtual ~Flows() = default;

  // `id` is the caller's, unused until now or since it was collected or stopped. Like all that do
  // not say otherwise, in the simulator's own context.
  virtual void start(uint64_t id, Rank from, Rank to, double bytes) = 0;
  // Returns the bytes left. Also of a flow that has ended but is not collected. From any context.
  virtual double stop(uint64_t id) = 0;
  virtual bool moves(uint64_t id) const = 0;    // started, and neither stopped nor ended
  virtual void flush() = 0;                     // what was asked for holds from now on
  virtual std::vector<uint64_t> collect() = 0;  // ended since the last call, in order
  virtual bool idle() const = 0;                // none moves, and all that ended are collected
};

// `changed` is called when there is something to flush or to collect, from any context.
using Changed = std::function<void()>;
std::unique_ptr<Flows> make_simgrid_flows(const Platform& platform, Changed changed);
std::unique_ptr<Flows> make_solved_flows(const ClusterConfig& config, int nodes, Agenda& agenda,
                                         Changed changed);
// Carries what stays on one host itself, for a cluster that has a `host_bandwidth`.
std::unique_ptr<Flows> make_local_flows(const ClusterConfig& config, int nodes, Agenda& agenda,
                                        Changed changed, std::unique_ptr<Flows> others);

}  // namespace tutti::simulation

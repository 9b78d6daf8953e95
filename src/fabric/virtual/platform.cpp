#include "fabric/virtual/platform.h"

#include <fmt/format.h>
#include <simgrid/plugins/energy.h>

#include <algorithm>
#include <simgrid/s4u.hpp>
#include <string>

namespace tutti::simulation {
namespace {

namespace s4u = simgrid::s4u;

// What TCP over Ethernet leaves of the wire. How close the model comes with it, latency as given
// and no cross-traffic is in docs/validation.md; a flow gets the bandwidth that the job says, at
// any latency.
constexpr double kBandwidthFactor = 0.957;

// Through memory, between nodes of one host: a copy, and the time to notice it.
constexpr double kLoopbackLatency_s = 500e-9;

// What a link adds to the penalty of the flows that cross it, besides its latency, over its
// bandwidth: what Velho and Legrand fitted to packet-level simulations of TCP.
constexpr double kSlowness = 20537;

// How long a computation takes is decided by the clock of each node. All hosts run at one nominal
// speed, so that work is a number of seconds.
constexpr double kNominalSpeed = 1e9;

s4u::Host* make_host(s4u::NetZone* zone, const ClusterConfig& config, size_t index, int cores) {
  const std::string name = fmt::format("host{}", index);
  s4u::Host* host = zone->create_host(name, kNominalSpeed);
  host->set_core_count(cores);
  // Idle power, then power with all cores busy; in between it grows with the load.
  host->set_property("wattage_per_state", fmt::format("{}:{}:{}", config.idle_watts,
                                                      config.idle_watts, config.busy_watts));
  host->set_property("wattage_off", "0");
  host->seal();

  return host;
}

}  // namespace

void start_simulator() {
  std::vector<std::string> arguments {
    "tutti", "--log=root.thres:critical", "--cfg=surf/precision:1e-9",
        "--cfg=contexts/stack-size:8192",  // KiB, mapped when touched: LibTorch runs on these
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        "--cfg=contexts/factory:thread",  // sanitizers do not follow a change of stacks
#else
        "--cfg=contexts/factory:raw",
#endif
  };
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int argc = static_cast<int>(arguments.size());
  // Never destroyed: it ends with the process, and that faster than it would by itself.
  static s4u::Engine* const engine = new s4u::Engine(&argc, argv.data());
  static_cast<void>(engine);
  sg_host_energy_plugin_init();
}

Platform::Platform(const ClusterConfig& config, int nodes) : config_(config) {
  s4u::NetZone* zone = s4u::create_star_zone("cluster");
  for (int64_t rack = 0; rack < config.racks && config.racks > 1; ++rack)
    rack_wires_.push_back(make_wire(config.rack_bandwidth));
  std::vector<int> cores;
  for (int64_t node = 0; node < nodes; ++node) {
    const auto host = static_cast<size_t>(tutti::host_of(config, node));
    if (host == cores.size()) {
      cores.push_back(0);
      rack_of_host_.push_back(rack_of(config, node));
    }
    if (!config.colocated || node < config.workers) ++cores[host];
  }
  for (size_t host = 0; host < cores.size(); ++host) {
    hosts_.push_back(make_host(zone, config, host, cores[host]));
    host_wires_.push_back(make_wire(config.bandwidth));
  }
  zone->seal();
}

Platform::Wire Platform::make_wire(double bandwidth) {
  const double usable = bandwidth * kBandwidthFactor;
  return {network_.add_link(usable), network_.add_link(usable)};
}

Network::Route Platform::route(Rank from, Rank to) const {
  const size_t a = host_index(from), b = host_index(to);
  // Memory bandwidth is per core, so flows do not share it; it does not suffer from TCP.
  if (a == b)
    return {.links = {}, .latency_s = kLoopbackLatency_s, .bound = config_.memory_bandwidth};
  Network::Route route{.links = {host_wires_[a].up, host_wires_[b].down},
                       .latency_s = 2 * config_.latency_s,
                       .penalty = 2 * kSlowness / config_.bandwidth};
  if (rack_of_host_[a] != rack_of_host_[b]) {
    route.links.push_back(rack_wires_[static_cast<size_t>(rack_of_host_[a])].up);
    route.links.push_back(rack_wires_[static_cast<size_t>(rack_of_host_[b])].down);
    route.latency_s += 2 * config_.rack_latency_s;
    route.penalty += 2 * kSlowness / config_.rack_bandwidth;
  }
  route.penalty += route.latency_s;
  return route;
}

void Platform::compute(Rank rank, double seconds) const {
  host_of(rank)->execute(seconds * kNominalSpeed);
}

void Platform::carry(Rank from, Rank to, size_t bytes) {
  if (same_host(from, to)) return;
  const double wire_bytes = static_cast<double>(bytes) / kBandwidthFactor;
  link_seconds_ += 2 * wire_bytes / config_.bandwidth;
  if (rack_of_host_[host_index(from)] != rack_of_host_[host_index(to)])
    link_seconds_ += 2 * wire_bytes / config_.rack_bandwidth;
}

// A link's power grows with its load, so what it takes beyond its idle power depends on the bytes
// alone and not on when they travelled.
double Platform::joules() const {
  double sum = 0;
  for (const s4u::Host* host : hosts_) sum += sg_host_get_consumed_energy(host);
  if (hosts_.size() < 2) return sum;  // no network
  const double links = static_cast<double>(hosts_.size()) +
                       static_cast<double>(config_.racks > 1 ? config_.racks : 0);
  return sum + links * config_.link_idle_watts * s4u::Engine::get_clock() +
         link_seconds_ * (config_.link_busy_watts - config_.link_idle_watts) / 2;
}

}  // namespace tutti::simulation

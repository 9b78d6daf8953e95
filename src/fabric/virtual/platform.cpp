#include "fabric/virtual/platform.h"

#include <fmt/format.h>
#include <simgrid/plugins/energy.h>

#include <algorithm>
#include <simgrid/s4u.hpp>
#include <string>

#include "fabric/virtual/wires.h"

namespace tutti::simulation {
namespace {

namespace s4u = simgrid::s4u;

// How long a computation takes is decided by the clock of each node. All hosts run at one nominal
// speed, so that work is a number of seconds.
constexpr double kNominalSpeed = 1e9;

// A rack's switch, or the only one.
struct Segment {
  s4u::NetZone* zone;
  simgrid::kernel::routing::NetPoint* router;
};

Segment make_rack(s4u::NetZone* root, const ClusterConfig& config, int64_t rack) {
  s4u::NetZone* zone = s4u::create_star_zone(fmt::format("rack{}", rack));
  zone->set_parent(root);
  auto* router = zone->create_router(fmt::format("switch{}", rack));
  const s4u::Link* uplink =
      root->create_split_duplex_link(fmt::format("uplink{}", rack), config.rack_bandwidth)
          ->set_latency(config.rack_latency_s)
          ->seal();
  root->add_route(zone->get_netpoint(), nullptr, router, nullptr,
                  {{uplink, s4u::LinkInRoute::Direction::UP}}, true);
  return {zone, router};
}

s4u::Host* make_host(s4u::NetZone* zone, const ClusterConfig& config, size_t index, int cores) {
  const std::string name = fmt::format("host{}", index);
  s4u::Host* host = zone->create_host(name, kNominalSpeed);
  host->set_core_count(cores);
  // Idle power, then power with all cores busy; in between it grows with the load.
  const auto number = static_cast<int64_t>(index);
  const double idle = idle_watts_of(config, number), busy = busy_watts_of(config, number);
  host->set_property("wattage_per_state", fmt::format("{}:{}:{}", idle, idle, busy));
  host->set_property("wattage_off", "0");
  host->seal();
  return host;
}

// A machine without a link whose cores compute for all hosts. Each busy core of it draws what a
// computing host draws more than an idle one.
s4u::Host* make_shared_cores(s4u::NetZone* zone, const ClusterConfig& config) {
  const auto cores = static_cast<int>(config.shared_cores);
  s4u::Host* host = zone->create_host("shared-cores", kNominalSpeed);
  host->set_core_count(cores);
  const double busy = (busy_watts_of(config, 0) - idle_watts_of(config, 0)) * cores;
  host->set_property("wattage_per_state", fmt::format("0:0:{}", busy));
  host->set_property("wattage_off", "0");
  host->seal();
  return host;
}

void wire_host(s4u::NetZone* zone, const ClusterConfig& config, const s4u::Host* host) {
  // Split duplex: sending does not slow down receiving.
  const s4u::Link* link =
      zone->create_split_duplex_link("link-" + host->get_name(), config.bandwidth)
          ->set_latency(config.latency_s)
          ->seal();
  zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr,
                  {{link, s4u::LinkInRoute::Direction::UP}}, true);
  // Memory bandwidth is per core, so flows do not share it; it does not suffer from TCP.
  const s4u::Link* loopback =
      zone->create_link("loopback-" + host->get_name(),
                        host_bandwidth_of(config) / kBandwidthFactor)
          ->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE)
          ->set_latency(config.host_latency_s)
          ->seal();
  zone->add_route(host->get_netpoint(), host->get_netpoint(), nullptr, nullptr,
                  {s4u::LinkInRoute(loopback)}, false);
}

}  // namespace

void start_simulator(NetworkSolver solver) {
  std::vector<std::string> arguments {
    "tutti", "--log=root.thres:critical", "--cfg=network/model:LV08",
        "--cfg=network/latency-factor:1",
        fmt::format("--cfg=network/bandwidth-factor:{}", kBandwidthFactor),
        "--cfg=network/crosstraffic:no",
        // No bound by TCP's window: a flow gets the bandwidth that the job says, at any latency.
        "--cfg=network/TCP-gamma:1e18", "--cfg=surf/precision:1e-9",
        "--cfg=contexts/stack-size:8192",  // KiB, mapped when touched: LibTorch runs on these
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        "--cfg=contexts/factory:thread",  // sanitizers do not follow a change of stacks
#else
        "--cfg=contexts/factory:raw",
#endif
  };
  if (solver == NetworkSolver::kSimgridFull) arguments.emplace_back("--cfg=network/optim:Full");
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int argc = static_cast<int>(arguments.size());
  // Never destroyed: it ends with the process, and that faster than it would by itself.
  static s4u::Engine* const engine = new s4u::Engine(&argc, argv.data());
  static_cast<void>(engine);
  sg_host_energy_plugin_init();
}

Platform::Platform(const ClusterConfig& config, int nodes) : config_(config) {
  s4u::NetZone* root = s4u::create_star_zone("cluster");
  std::vector<Segment> racks;
  const bool wired = config.network_solver != NetworkSolver::kIncremental;
  if (wired && config.racks > 1)
    for (int64_t rack = 0; rack < config.racks; ++rack)
      racks.push_back(make_rack(root, config, rack));

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
    s4u::NetZone* zone =
        racks.empty() ? root : racks[static_cast<size_t>(rack_of_host_[host])].zone;
    hosts_.push_back(make_host(zone, config, host, cores[host]));
    if (wired) wire_host(zone, config, hosts_.back());
  }
  if (config.shared_cores > 0) shared_ = make_shared_cores(root, config);
  link_seconds_.resize(hosts_.size());
  if (config.racks > 1) uplink_seconds_.resize(static_cast<size_t>(config.racks));
  for (const Segment& rack : racks) rack.zone->seal();
  root->seal();
}

void Platform::compute(Rank rank, double seconds) const {
  const double work = seconds * kNominalSpeed;
  // Host::execute() always computes where the actor is, whatever the host.
  if (shared_)
    s4u::this_actor::exec_init(work)->set_host(shared_)->wait();
  else
    host_of(rank)->execute(work);
}

void Platform::carry(Rank from, Rank to, size_t bytes) {
  if (same_host(from, to)) return;
  const double wire_bytes = static_cast<double>(bytes) / kBandwidthFactor;
  for (const Rank end : {from, to})
    link_seconds_[host_index(end)] += wire_bytes / config_.bandwidth;
  const auto rack = [&](Rank end) { return static_cast<size_t>(rack_of_host_[host_index(end)]); };
  if (rack(from) == rack(to)) return;
  for (const Rank end : {from, to})
    uplink_seconds_[rack(end)] += wire_bytes / config_.rack_bandwidth;
}

// A link's power grows with its load, so what it takes beyond its idle power depends on the bytes
// alone and not on when they travelled.
ClusterEnergy Platform::energy() const {
  ClusterEnergy energy;
  const double shared_joules = shared_ ? sg_host_get_consumed_energy(shared_) : 0;
  for (const s4u::Host* host : hosts_)
    energy.hosts.push_back(sg_host_get_consumed_energy(host) +
                           shared_joules / static_cast<double>(hosts_.size()));
  if (hosts_.size() < 2) return energy;  // no network
  const double idle_joules = config_.link_idle_watts * s4u::Engine::get_clock();
  const double more_watts = (config_.link_busy_watts - config_.link_idle_watts) / 2;
  for (const double busy_s : link_seconds_)
    energy.links.push_back(idle_joules + busy_s * more_watts);
  for (const double busy_s : uplink_seconds_)
    energy.uplinks.push_back(idle_joules + busy_s * more_watts);
  return energy;
}

}  // namespace tutti::simulation

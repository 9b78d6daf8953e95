// Flows whose rates are solved here (shared_links.h), on the same star or racks that SimGrid gets.
#include <cmath>
#include <utility>

#include "fabric/virtual/flows.h"
#include "fabric/virtual/shared_links.h"
#include "fabric/virtual/wires.h"

namespace tutti::simulation {
namespace {

// A link makes the round trip of the flows that cross it longer by its latency, and by this over
// its bandwidth: what Velho and Legrand fitted to packet-level simulations of TCP. A flow's weight
// is one over its round trip.
constexpr double kBytesInTurn = 20537;

class SolvedFlows final : public Flows {
 public:
  SolvedFlows(const ClusterConfig& config, int nodes, Agenda& agenda, Changed changed)
      : config_(config), agenda_(agenda), changed_(std::move(changed)) {
    if (config.racks > 1)
      for (int64_t rack = 0; rack < config.racks; ++rack)
        uplinks_.push_back(make_wire(config.rack_bandwidth));
    for (Rank rank = 0; rank < nodes; ++rank) {
      const auto host = static_cast<size_t>(tutti::host_of(config, rank));
      host_of_.push_back(host);
      if (host < hosts_.size()) continue;
      hosts_.push_back(make_wire(config.bandwidth));
      rack_of_host_.push_back(static_cast<size_t>(rack_of(config, rank)));
    }
  }

  void start(uint64_t id, Rank from, Rank to, double bytes) override {
    links_.start(id, route(from, to), std::ceil(bytes), now());
  }

  double stop(uint64_t id) override {
    const double left = links_.carries(id) ? links_.stop(id, now()) : 0;
    std::erase(ended_, id);
    changed_();
    return left;
  }

  bool moves(uint64_t id) const override { return links_.carries(id); }

  // Waits for the next event of the links, which every flow that begins or ends may move.
  void flush() override {
    const double next_s = links_.next_s(now());
    if (alarm_ != 0 && next_s == alarm_s_) return;
    if (alarm_ != 0) agenda_.cancel(std::exchange(alarm_, 0));
    if (!std::isfinite(next_s)) return;
    alarm_s_ = next_s;
    alarm_ = agenda_.at(next_s, [this] {
      alarm_ = 0;
      const std::vector<uint64_t> ended = links_.advance(now());
      ended_.insert(ended_.end(), ended.begin(), ended.end());
      if (ended_.empty()) return flush();
      changed_();
    });
  }

  std::vector<uint64_t> collect() override { return std::exchange(ended_, {}); }
  bool idle() const override { return links_.empty() && ended_.empty(); }

 private:
  // Split duplex: sending does not slow down receiving.
  struct Wire {
    SharedLinks::Link up, down;
  };

  Wire make_wire(double bandwidth) {
    const double usable = bandwidth * kBandwidthFactor;
    const SharedLinks::Link up = links_.add_link(usable);
    return {up, links_.add_link(usable)};
  }

  SharedLinks::Route route(Rank from, Rank to) const {
    const size_t a = host_of_[static_cast<size_t>(from)], b = host_of_[static_cast<size_t>(to)];
    SharedLinks::Route route;
    if (a == b) {  // Memory bandwidth is per core, so flows do not share it.
      route.latency_s = config_.host_latency_s;
      route.bound = host_bandwidth_of(config_);
      return route;
    }
    double turn_s = 2 * kBytesInTurn / config_.bandwidth;
    route.links = {hosts_[a].up, hosts_[b].down};
    route.length = 2;
    route.latency_s = 2 * config_.latency_s;
    if (rack_of_host_[a] != rack_of_host_[b]) {
      route.links[route.length++] = uplinks_[rack_of_host_[a]].up;
      route.links[route.length++] = uplinks_[rack_of_host_[b]].down;
      route.latency_s += 2 * config_.rack_latency_s;
      turn_s += 2 * kBytesInTurn / config_.rack_bandwidth;
    }
    route.weight = 1 / (route.latency_s + turn_s);
    return route;
  }

  const ClusterConfig& config_;
  Agenda& agenda_;
  Changed changed_;
  SharedLinks links_;
  std::vector<Wire> hosts_, uplinks_;
  std::vector<size_t> host_of_;       // by rank
  std::vector<size_t> rack_of_host_;  // by host
  std::vector<uint64_t> ended_;       // and not collected
  uint64_t alarm_ = 0;                // on the agenda; 0: none
  double alarm_s_ = 0;
};

}  // namespace

std::unique_ptr<Flows> make_solved_flows(const ClusterConfig& config, int nodes, Agenda& agenda,
                                         Changed changed) {
  return std::make_unique<SolvedFlows>(config, nodes, agenda, std::move(changed));
}

}  // namespace tutti::simulation

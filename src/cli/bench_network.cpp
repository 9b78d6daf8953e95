// `tutti bench network`: how far predictions of the virtual fabric are from what real TCP does.
//
// Hosts are network namespaces on a bridge, their links shaped by token buckets; on each a node of
// the process fabric, joined as `tutti join` does it. All-reduces are timed between them and
// simulated on a star of the same bandwidth and latency, by the same code.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cli/bench.h"
#include "cli/between_hosts.h"
#include "cli/network_study.h"
#include "collectives/all_reduce.h"
#include "core/bytes.h"
#include "core/error.h"
#include "fabric/exchange.h"
#include "fabric/process/namespaced_network.h"
#include "jobs/plugins.h"

namespace tutti {
namespace {

using nlohmann::json;
using process::NamespacedNetwork;

const std::vector<std::string> kTopologies = {"ring", "butterfly", "tree", "all_to_all"};
constexpr std::string_view kUnshaped = "ring";  // what is run where nothing holds nodes back
// Short cases are what this machine's other work disturbs most, and cheap to repeat: every case
// gets this long per round, within limits.
constexpr double kRound_s = 0.5;
constexpr int kMostTimes = 51;
constexpr int kMostRounds = 5;

struct Grid {
  std::vector<int> nodes;
  std::vector<double> bandwidths;  // bits per second
  std::vector<size_t> megabytes;
};

Group everyone(int nodes, Rank rank) {
  Group group{.ranks = {}, .index = static_cast<size_t>(rank), .racks = {}};
  for (Rank other = 0; other < nodes; ++other) group.ranks.push_back(other);
  return group;
}

enum class BarrierPart : uint64_t { kCome, kGo };

void barrier(Node& node, uint64_t round) {
  Endpoint& endpoint = node.endpoint();
  const Tag::Step step = Tag::wrapped(round);
  const Tag come(Purpose::kControl, step, BarrierPart::kCome);
  const Tag go(Purpose::kControl, step, BarrierPart::kGo);
  if (endpoint.rank() != 0) {
    send(node, 0, come, {});
    receive(node, 0, go, {});
    return;
  }
  for (Rank rank = 1; rank < endpoint.size(); ++rank) receive(node, rank, come, {});
  for (Rank rank = 1; rank < endpoint.size(); ++rank) send(node, rank, go, {});
}

// What a node does, real or simulated: every case as often as asked, and how long each took.
std::string time_cases(Node& node, const std::vector<NetworkCase>& cases) {
  json result = {{"one_way_s", one_way_s(node)}, {"times", json::array()}};
  uint64_t round = 1000;
  for (const NetworkCase& c : cases) {
    const size_t count = c.bytes / sizeof(float);
    Buffer<float> values(count);
    node.clock().arithmetic().fill(values.span(), 1.0F);
    const auto sum =
        make_all_reduce(node, nullptr, topology(c.topology).rounds,
                        everyone(node.endpoint().size(), node.endpoint().rank()), count, kSumFloat);
    json times = json::array();
    for (int i = 0; i < c.repetitions; ++i) {
      barrier(node, ++round);
      const double start_s = node.clock().now();
      sum->start(writable_bytes_of(values.span()), Tag(Purpose::kGradient, Tag::wrapped(round)));
      sum->finish();
      times.push_back(node.clock().now() - start_s);
    }
    result["times"].push_back(times);
  }
  return result.dump();
}

// The median over the repetitions of the slowest node.
double slowest_s(const std::vector<json>& results, size_t which) {
  std::vector<double> times;
  for (size_t i = 0; i < results[0]["times"][which].size(); ++i) {
    double slowest = 0;
    for (const json& node : results)
      slowest = std::max(slowest, node["times"][which][i].get<double>());
    times.push_back(slowest);
  }
  return median(times);
}

std::vector<json> run_on_hosts(const NamespacedNetwork& network, int nodes,
                               const std::vector<NetworkCase>& cases,
                               const std::atomic<bool>& stop) {
  return run_between_hosts(
      network, nodes, [&](Node& node) { return time_cases(node, cases); }, stop);
}

// Returns the simulated time of each case.
std::vector<double> predict(const std::vector<NetworkCase>& cases, int nodes, double bits_per_s,
                            double link_latency_s, NetworkSolver solver,
                            const std::atomic<bool>& stop) {
  ClusterConfig cluster;
  cluster.network_solver = solver;
  cluster.fabric = FabricKind::kVirtual;
  cluster.workers = nodes;
  cluster.bandwidth = bits_per_s / 8;
  cluster.latency_s = link_latency_s;
  cluster.timeout_s = 1e6;
  cluster.cost_only = true;
  std::vector<NetworkCase> once = cases;
  for (NetworkCase& c : once) c.repetitions = 1;
  const auto fabric =
      make_fabric(cluster, std::vector<std::string>(static_cast<size_t>(nodes), "worker"), 1);
  const auto results = results_of(
      fabric->run([&](Node& node) { return time_cases(node, once); }, stop), "network", stop);
  std::vector<double> times_s;
  for (size_t i = 0; i < cases.size(); ++i) times_s.push_back(slowest_s(results, i));
  return times_s;
}

void predict(std::vector<NetworkCase>& cases, int nodes, double bits_per_s, double link_latency_s,
             const std::atomic<bool>& stop) {
  const auto by = [&](NetworkSolver solver) {
    return predict(cases, nodes, bits_per_s, link_latency_s, solver, stop);
  };
  const std::vector<double> simgrid_s = by(NetworkSolver::kSimgrid);
  const std::vector<double> incremental_s = by(NetworkSolver::kIncremental);
  for (size_t i = 0; i < cases.size(); ++i) {
    cases[i].predicted_s = simgrid_s[i];
    cases[i].incremental_s = incremental_s[i];
  }
}

std::vector<NetworkCase> make_cases(const Grid& grid, int nodes) {
  std::vector<NetworkCase> cases;
  for (const size_t megabytes : grid.megabytes)
    for (const std::string& name : kTopologies) {
      NetworkCase c;
      c.topology = name;
      c.bytes = megabytes * 1'000'000;
      const size_t values = c.bytes / sizeof(float);
      for (Rank rank = 0; rank < nodes; ++rank)
        c.traffic_bytes += static_cast<double>(
            sizeof(float) *
            volume_sent(topology(name).rounds(everyone(nodes, rank), values)).elements);
      cases.push_back(c);
    }
  return cases;
}

// Bytes per second that all nodes together send when nothing holds them back but these cores.
double unshaped_rate(const NamespacedNetwork& network, int nodes, const std::atomic<bool>& stop) {
  Grid grid{{nodes}, {0}, {8}};
  std::vector<NetworkCase> cases = make_cases(grid, nodes);
  std::erase_if(cases, [](const NetworkCase& c) { return c.topology != kUnshaped; });
  cases[0].repetitions = 5;
  network.shape(0);
  const auto results = run_on_hosts(network, nodes, cases, stop);
  return cases[0].traffic_bytes / slowest_s(results, 0);
}

// Decides how often to run each case, or why not at all.
void plan(std::vector<NetworkCase>& cases, double unshaped, int rounds) {
  for (NetworkCase& c : cases) {
    c.repetitions = std::clamp(static_cast<int>(rounds * kRound_s / c.predicted_s), 1, kMostTimes);
    if (c.traffic_bytes / c.predicted_s > unshaped / 2)
      c.left_out = fmt::format(
          "its traffic, {:.2g} GB/s, is more than half of the {:.2g} GB/s that "
          "these cores move unshaped",
          c.traffic_bytes / c.predicted_s / 1e9, unshaped / 1e9);
  }
}

// Every case that `all` keeps, measured between hosts whose links carry `bits_per_s`.
void study_cases(NetworkStudy& study, const NamespacedNetwork& network,
                 const std::vector<NetworkCase>& all, int nodes, double bits_per_s,
                 double one_way_s, const BenchOptions& options, const std::atomic<bool>& stop) {
  std::vector<NetworkCase> kept;
  for (const NetworkCase& c : all) {
    if (c.left_out.empty())
      kept.push_back(c);
    else
      study.add_left_out(c, nodes, bits_per_s);
  }
  const auto results = run_on_hosts(network, nodes, kept, stop);
  for (size_t i = 0; i < kept.size(); ++i) {
    NetworkCase& c = kept[i];
    c.measured_s = slowest_s(results, i);
    if (!options.json)
      fmt::print("{:>5} {:>10.0f} {:>6} {:<11} {:>12.1f} {:>12.1f} {:>6.1f}%\n", nodes,
                 bits_per_s / 1e6, c.bytes / 1'000'000, c.topology, c.measured_s * 1e3,
                 c.predicted_s * 1e3, (c.predicted_s / c.measured_s - 1) * 100);
  }
  study.add_measured(kept, nodes, bits_per_s, one_way_s);
}

}  // namespace

json bench_network(const BenchOptions& options, const std::atomic<bool>& stop) {
  if (const std::string reason = NamespacedNetwork::why_not(); !reason.empty())
    throw ConfigError("WHAT", "tutti bench network: " + reason);
  const Grid grid{options.processes.empty() ? std::vector<int>{2, 4, 8} : options.processes,
                  {100e6, 1e9},
                  {1, 4, 32}};
  NetworkStudy study;
  if (!options.json)
    fmt::print("\n{:>5} {:>10} {:>6} {:<11} {:>12} {:>12} {:>7}\n", "nodes", "Mbit/s", "MB",
               "topology", "measured ms", "predicted", "error");
  for (const int nodes : grid.nodes) {
    const NamespacedNetwork network(nodes);
    const double unshaped = unshaped_rate(network, nodes, stop);
    say(options, fmt::format("network: {} hosts, {:.2f} GB/s unshaped", nodes, unshaped / 1e9));
    for (const double bits_per_s : grid.bandwidths) {
      network.shape(bits_per_s);
      const double one_way_s = run_on_hosts(network, nodes, {}, stop)[0]["one_way_s"];
      std::vector<NetworkCase> all = make_cases(grid, nodes);
      predict(all, nodes, bits_per_s, one_way_s / 2, stop);
      plan(all, unshaped, std::min(options.rounds, kMostRounds));
      study_cases(study, network, all, nodes, bits_per_s, one_way_s, options, stop);
    }
  }
  return study.summary(options.json);
}

}  // namespace tutti

// `tutti bench virtual`: how fast clusters are simulated. `tutti bench startup`: how fast the
// program and its workers are up.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "cli/bench.h"
#include "fabric/cluster.h"

namespace tutti {
namespace {

using nlohmann::json;

struct Timed {
  double wall_s = 0;
  CommandOutput output;
};

// Runs a command and measures the real time that it takes.
Timed timed(const Words& command, const std::atomic<bool>& stop) {
  Timed result;
  const auto start = std::chrono::steady_clock::now();
  result.output = measured_output_of(command, stop);
  result.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

struct VirtualCase {
  std::string name;
  int nodes, steps;
  std::vector<std::string> strategy;
  int racks = 1;
  NetworkSolver solver = NetworkSolver::kSimgrid;
  std::string growth = {};  // the series of which it is one size; empty: of none
};

struct Figures {
  std::vector<double> wall_s, cpu_s;
  double virtual_s = 0, peak_bytes = 0, messages = 0;
};

std::vector<std::string> settings_of(const VirtualCase& c) {
  // The multi-layer perceptron has 432,490 parameters, as many as LeNet (431,080).
  std::vector<std::string> settings = {
      "task.data.kind=synthetic-classes",
      fmt::format("task.data.samples={}", c.nodes * (c.steps + 2) * 2),
      "task.data.features=784",
      "task.model={kind=\"mlp\", hidden=[544]}",
      fmt::format("task.global_batch={}", c.nodes),
      fmt::format("task.max_steps={}", c.steps),
      "task.epochs=100",
      "task.eval_every=100",
      "cluster.fabric=virtual",
      "cluster.cost_only=true",
      fmt::format("cluster.workers={}", c.nodes),
      fmt::format("cluster.racks={}", c.racks),
      fmt::format("cluster.network_solver={}", word_of(c.solver))};
  settings.insert(settings.end(), c.strategy.begin(), c.strategy.end());
  return settings;
}

std::vector<std::string> all_reduce_by(const std::string& topology) {
  return {"strategy.topology=" + topology};
}

std::vector<std::string> servers_with(const std::string& consistency) {
  return {"strategy.kind=parameter_server", "strategy.servers=16",
          "strategy.consistency=" + consistency};
}

std::vector<VirtualCase> single_cases() {
  return {{"64 nodes, ring", 64, 4, all_reduce_by("ring")},
          {"1,000 nodes, butterfly", 1000, 20, all_reduce_by("butterfly")},
          {"1,000 nodes, hierarchical", 1000, 20, all_reduce_by("hierarchical"), 25}};
}

// Sizes of one cluster after the other, to see how fast the cost of simulating them grows.
std::vector<VirtualCase> growing_cases() {
  std::vector<VirtualCase> cases;
  const auto add = [&](const std::string& series, NetworkSolver solver, int steps,
                       const std::vector<std::string>& strategy, int nodes_in_rack,
                       const std::vector<int>& sizes) {
    const std::string growth = fmt::format("{}, {}", series, word_of(solver));
    for (const int nodes : sizes)
      cases.push_back({fmt::format("{}, {} nodes", growth, nodes), nodes, steps, strategy,
                       nodes_in_rack > 0 ? nodes / nodes_in_rack : 1, solver, growth});
  };
  // SimGrid's solver would take minutes where there are more asynchronous workers.
  constexpr auto kSimgrid = NetworkSolver::kSimgrid, kIncremental = NetworkSolver::kIncremental;
  add("servers, bsp", kSimgrid, 10, servers_with("bsp"), 0, {64, 128, 256});
  add("servers, bsp", kIncremental, 10, servers_with("bsp"), 0, {64, 128, 256, 512});
  add("servers, asp", kSimgrid, 10, servers_with("asp"), 0, {32, 64, 128});
  add("servers, asp", kIncremental, 10, servers_with("asp"), 0, {64, 128, 256, 512});
  for (const NetworkSolver solver : {kSimgrid, kIncremental})
    add("ring", solver, 2, all_reduce_by("ring"), 0, {64, 128, 256, 512});
  add("hierarchical", kSimgrid, 10, all_reduce_by("hierarchical"), 40, {1000, 2000, 4000});
  add("hierarchical", kIncremental, 10, all_reduce_by("hierarchical"), 40, {1000, 3200, 10000});
  return cases;
}

Figures measure_case(const VirtualCase& c, int rounds, const BenchOptions& options,
                     const std::atomic<bool>& stop) {
  Figures figures;
  for (int round = 0; round < rounds; ++round) {
    say(options, fmt::format("virtual: {}, round {}", c.name, round + 1));
    const TemporaryFolder folder;
    const Timed run = timed(train_command(folder, "run", settings_of(c)), stop);
    leave_if_stopped(stop);
    const json record = record_in(run.output.text);
    figures.wall_s.push_back(run.wall_s);
    figures.cpu_s.push_back(run.output.cpu_s);
    figures.virtual_s = record["time"]["total_s"];
    figures.peak_bytes = std::max(figures.peak_bytes, run.output.peak_bytes);
    figures.messages = 0;
    for (const json& node : record["nodes"]) figures.messages += node["messages"].get<double>();
  }
  return figures;
}

// The slope of log(CPU time) over log(messages), by least squares: 1 where both grow alike. Real
// time would tell as much of what else the machine does.
double exponent_of(const std::vector<std::pair<double, double>>& sizes) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [messages, cpu_s] : sizes) {
    const double a = std::log(messages), b = std::log(cpu_s);
    n += 1;
    x += a;
    y += b;
    xx += a * a;
    xy += a * b;
  }
  return (n * xy - x * y) / (n * xx - x * x);
}

json report_case(const VirtualCase& c, const Figures& figures, const BenchOptions& options) {
  const double wall = median(figures.wall_s), cpu = median(figures.cpu_s);
  if (!options.json)
    fmt::print("{:<36} {:>5} {:>9.2f} {:>9.2f} {:>12.2f} {:>10.3f} {:>8.0f} {:>10.0f} {:>10.1f}\n",
               c.name, c.steps, wall, cpu, c.steps / wall, figures.virtual_s,
               figures.peak_bytes / 1e6, figures.messages, cpu / figures.messages * 1e6);
  return {{"case", c.name},
          {"nodes", c.nodes},
          {"steps", c.steps},
          {"network_solver", word_of(c.solver)},
          {"growth", c.growth},
          {"real_s", wall},
          {"cpu_s", cpu},
          {"steps_per_real_s", c.steps / wall},
          {"virtual_s", figures.virtual_s},
          {"peak_bytes", figures.peak_bytes},
          {"messages", figures.messages}};
}

}  // namespace

json bench_virtual(const BenchOptions& options, const std::atomic<bool>& stop) {
  std::vector<VirtualCase> cases;
  if (wanted(options, "cases")) cases = single_cases();
  if (wanted(options, "growth"))
    for (const VirtualCase& c : growing_cases()) cases.push_back(c);
  if (!options.json)
    fmt::print("\n{:<36} {:>5} {:>9} {:>9} {:>12} {:>10} {:>8} {:>10} {:>10}\n", "costs only",
               "steps", "real s", "CPU s", "steps/real s", "virtual s", "peak MB", "messages",
               "us/message");
  json result = json::array();
  std::map<std::string, std::vector<std::pair<double, double>>> series;
  for (const VirtualCase& c : cases) {
    const int rounds = c.growth.empty() ? std::min(options.rounds, 3) : 1;
    const Figures figures = measure_case(c, rounds, options, stop);
    result.push_back(report_case(c, figures, options));
    if (!c.growth.empty()) series[c.growth].emplace_back(figures.messages, median(figures.cpu_s));
  }
  for (const auto& [growth, sizes] : series) {
    const double exponent = exponent_of(sizes);
    result.push_back({{"growth", growth}, {"exponent", exponent}});
    if (!options.json) fmt::print("{:<36} CPU time grows as messages ^ {:.2f}\n", growth, exponent);
  }
  return result;
}

json bench_startup(const BenchOptions& options, const std::atomic<bool>& stop) {
  std::vector<double> help, workers;
  for (int round = 0; round < std::max(5, options.rounds); ++round) {
    help.push_back(timed({program_folder() + "/tutti", "--help"}, stop).wall_s);
    const TemporaryFolder folder;
    workers.push_back(record_in(
        output_of(train_command(folder, "run",
                                {"task.data.kind=synthetic-classes", "task.model=logistic",
                                 "task.max_steps=1", "cluster.workers=2"}),
                  stop))["time"]["startup_s"]);
  }
  if (!options.json)
    fmt::print("\n{:<28} {:>10.1f} ms\n{:<28} {:>10.1f} ms\n", "tutti --help", median(help) * 1e3,
               "2 workers up, models loaded", median(workers) * 1e3);
  return {{{"what", "help"}, {"median_s", median(help)}},
          {{"what", "two workers up"}, {"median_s", median(workers)}}};
}

}  // namespace tutti

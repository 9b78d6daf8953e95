// `tutti bench virtual`: how fast clusters are simulated. `tutti bench startup`: how fast the
// program and its workers are up.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cli/bench.h"

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
  std::string topology;
  int racks;
};

std::vector<std::string> settings_of(const VirtualCase& c) {
  return {"task.data.kind=synthetic-classes",
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
          "strategy.topology=" + c.topology};
}

}  // namespace

json bench_virtual(const BenchOptions& options, const std::atomic<bool>& stop) {
  // The multi-layer perceptron has 432,490 parameters, as many as LeNet (431,080).
  const std::vector<VirtualCase> cases = {
      {"64 nodes, ring", 64, 4, "ring", 1},
      {"1,000 nodes, butterfly", 1000, 20, "butterfly", 1},
      {"1,000 nodes, hierarchical", 1000, 20, "hierarchical", 25}};
  struct Figures {
    std::vector<double> wall_s;
    double virtual_s = 0, peak_bytes = 0;
  };
  std::vector<Figures> figures(cases.size());
  for (int round = 0; round < std::min(options.rounds, 3); ++round)
    for (size_t i = 0; i < cases.size(); ++i) {
      say(options, fmt::format("virtual: {}, round {}", cases[i].name, round + 1));
      const TemporaryFolder folder;
      const Timed run = timed(train_command(folder, "run", settings_of(cases[i])), stop);
      figures[i].wall_s.push_back(run.wall_s);
      figures[i].virtual_s = record_in(run.output.text)["time"]["total_s"];
      figures[i].peak_bytes = std::max(figures[i].peak_bytes, run.output.peak_bytes);
    }
  leave_if_stopped(stop);
  json result = json::array();
  if (!options.json)
    fmt::print("\n{:<28} {:>7} {:>10} {:>12} {:>12} {:>12}\n", "costs only", "steps", "real s",
               "steps/real s", "virtual s", "peak MB");
  for (size_t i = 0; i < cases.size(); ++i) {
    const VirtualCase& c = cases[i];
    const double wall = median(figures[i].wall_s);
    result.push_back({{"case", c.name},
                      {"nodes", c.nodes},
                      {"steps", c.steps},
                      {"real_s", wall},
                      {"steps_per_real_s", c.steps / wall},
                      {"virtual_s", figures[i].virtual_s},
                      {"peak_bytes", figures[i].peak_bytes}});
    if (!options.json)
      fmt::print("{:<28} {:>7} {:>10.2f} {:>12.2f} {:>12.3f} {:>12.0f}\n", c.name, c.steps, wall,
                 c.steps / wall, figures[i].virtual_s, figures[i].peak_bytes / 1e6);
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

// `tutti bench virtual`: how fast clusters are simulated. `tutti bench startup`: how fast the
// program and its workers are up.
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>

#include "cli/bench.h"

namespace tutti {
namespace {

using nlohmann::json;

struct Timed {
  double wall_s = 0;
  std::string output;
};

// Runs a command and measures the real time that it takes.
Timed timed(const Words& command, const std::atomic<bool>& stop) {
  Timed result;
  const auto start = std::chrono::steady_clock::now();
  result.output = output_of(command, stop);
  result.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

// The largest process among the children so far.
double children_peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
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
  json result = json::array();
  if (!options.json)
    fmt::print("\n{:<28} {:>7} {:>10} {:>12} {:>12} {:>12}\n", "costs only", "steps", "real s",
               "steps/real s", "virtual s", "peak MB");
  for (const VirtualCase& c : cases) {
    std::vector<double> seconds;
    double virtual_s = 0;
    for (int round = 0; round < std::min(options.rounds, 3) && !stop; ++round) {
      say(options, fmt::format("virtual: {}, round {}", c.name, round + 1));
      const TemporaryFolder folder;
      const Timed run = timed(train_command(folder, "run", settings_of(c)), stop);
      const json record = record_in(run.output);
      virtual_s = record["time"]["total_s"];
      seconds.push_back(run.wall_s);
    }
    leave_if_stopped(stop);
    const double wall = median(seconds);
    result.push_back({{"case", c.name},
                      {"nodes", c.nodes},
                      {"steps", c.steps},
                      {"real_s", wall},
                      {"steps_per_real_s", c.steps / wall},
                      {"virtual_s", virtual_s},
                      {"peak_bytes", children_peak_bytes()}});
    if (!options.json)
      fmt::print("{:<28} {:>7} {:>10.2f} {:>12.2f} {:>12.3f} {:>12.0f}\n", c.name, c.steps, wall,
                 c.steps / wall, virtual_s, children_peak_bytes() / 1e6);
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

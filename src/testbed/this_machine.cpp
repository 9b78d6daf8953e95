#include "testbed/this_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <thread>

#include "core/error.h"
#include "core/temporary_folder.h"
#include "core/units.h"
#include "fabric/node.h"
#include "jobs/energy.h"
#include "jobs/launcher.h"
#include "jobs/run_folder.h"
#include "jobs/versions.h"
#include "testbed/clusters.h"
#include "testbed/local_sums.h"
#include "testbed/model_cost.h"

namespace tutti {
namespace {

constexpr const char* kHere = "here";
constexpr int kLaunches = 3;  // where memory comes to lie makes one faster than another
constexpr double kKept_h = 24;
constexpr double kAtMostBandwidth = 1e15;  // where a sum costs nothing by its bytes
const std::vector<size_t> kSizes = {4096,    16384,   65536,    262144,
                                    1 << 20, 4 << 20, 16 << 20, 64 << 20};

// The bytes of memory that a member of a sum by `direct` moves, which range over all buffers.
double direct_bytes(double bytes) { return 2 * bytes; }

// Twice, a member says that it is ready, and sees that each of the others is.
double stores_of_direct(const ClusterConfig& c) { return 2 * static_cast<double>(c.workers); }

double range_of_direct(const ClusterConfig& c, double bytes) {
  return bytes * static_cast<double>(c.workers);
}

// A round of a ring: what it sends, and the last piece of it, which is added when all is there.
double ring_combines_s(const ClusterConfig& c, double bytes) {
  const auto members = static_cast<double>(c.workers);
  const double last = std::min(bytes / members, static_cast<double>(kBulkBytes));
  return (members - 1) * memory_time_of(c, 3 * last, std::max(3 * last, 2 * bytes));
}

double ring_bytes(const ClusterConfig& c, double bytes) {
  const auto members = static_cast<double>(c.workers);
  return 2 * (members - 1) * bytes / members;
}

double ring_rounds(const ClusterConfig& c) { return 2 * static_cast<double>(c.workers - 1); }

// Bandwidths and the time to see a store, for a cache of this size.
double fit_direct(ClusterConfig& c, std::span<const SumTime> times, double cache) {
  std::vector<TimedPass> passes;
  for (const SumTime& time : times) {
    const auto bytes = static_cast<double>(time.bytes);
    const double moved = direct_bytes(bytes), range = range_of_direct(c, bytes);
    const double cached = range > cache ? cache / range : 1;
    passes.push_back(
        {.layers = moved * cached, .samples = moved * (1 - cached), .seconds = time.direct_s});
  }
  const PassCosts costs = fit_pass_costs(passes);
  c.cache_bytes = cache;
  c.visibility_s = costs.step_s / stores_of_direct(c);
  c.cache_bandwidth = costs.layer_s > 0 ? 1 / costs.layer_s : kAtMostBandwidth;
  // Where all sums fit the cache nothing is known of the memory behind it.
  c.memory_bandwidth = costs.sample_s > 0 ? 1 / costs.sample_s : c.cache_bandwidth;
  return costs.error;
}

void fit_ring(ClusterConfig& c, std::span<const SumTime> times) {
  std::vector<TimedPass> passes;
  for (const SumTime& time : times) {
    const auto bytes = static_cast<double>(time.bytes);
    const double messages_s = std::max(0.1 * time.ring_s, time.ring_s - ring_combines_s(c, bytes));
    passes.push_back({.layers = 0, .samples = ring_bytes(c, bytes), .seconds = messages_s});
  }
  const PassCosts costs = fit_pass_costs(passes);
  c.host_latency_s = costs.step_s / ring_rounds(c);
  c.host_bandwidth = costs.sample_s > 0 ? 1 / costs.sample_s : kAtMostBandwidth;
}

// A training of a model that costs next to nothing, with the steps that it takes for real.
Job idle_training(int64_t steps) {
  return load_job(
      "", {"name=idle", "task.data={kind=\"synthetic-classes\", features=8, samples=2000}",
           "task.model=logistic", "task.global_batch=16", "task.epochs=1000000",
           "task.eval_every=1e9", fmt::format("task.max_steps={}", steps), "optimizer.kind=sgd",
           "strategy={ kind = \"solo\" }", "cluster.workers=1"});
}

// What a step of training takes besides its gradient: of two runs whose lengths differ, so that
// what happens once does not count. As the cluster declares it, for a core of the reference speed.
double measure_loop_overhead(double speed_flops, const std::atomic<bool>& stop) {
  constexpr int64_t kShort = 2000, kMore = 20000;
  double least_s = INFINITY;
  for (int i = 0; i < kLaunches; ++i) {
    double total_s = 0;
    for (const int64_t steps : {kShort, kShort + kMore}) {
      const TemporaryFolder folder;
      Job job = idle_training(steps);
      const RunRecord record = launch(job, {.out = folder / "run"}, stop);
      if (stop) throw InterruptedError();
      if (record.exit_code != 0 || record.nodes.empty())
        throw Error(fmt::format("this machine could not be measured: {}", record.error));
      total_s = record.nodes.front().total_s - total_s;
    }
    least_s = std::min(least_s, total_s / kMore);
  }
  const Job job = idle_training(1);
  const Resolved task = resolve(job);
  const ModelCost cost = measure_model_cost(job, task);
  const double gradient_s =
      cost.step_s + 2 * static_cast<double>(task.architecture.layers.size()) * cost.layer_s +
      static_cast<double>(job.task.global_batch) * cost.sample_s;
  return std::max(0.0, least_s - gradient_s) * speed_flops / kReferenceFlops;
}

std::string heading() {
  const Machine machine = machine_description();
  return fmt::format("# {}, {} hardware threads, {}, measured by tutti {}\n", machine.cpu,
                     machine.hardware_threads.value_or(0), machine.kernel,
                     library_versions().tutti);
}

// Hours since it was measured, if it is of this machine and can be read.
std::optional<double> age_of(const std::string& path, const Announce& announce) {
  namespace fs = std::filesystem;
  std::error_code failed;
  if (!fs::is_regular_file(path, failed)) return std::nullopt;
  const auto age = fs::file_time_type::clock::now() - fs::last_write_time(path, failed);
  const double hours = std::chrono::duration<double, std::ratio<3600>>(age).count();
  try {
    if (!read_file(path).starts_with(heading())) return std::nullopt;
    load_cluster(path);
    return hours < -0.1 ? std::nullopt : std::optional(hours);
  } catch (const Error& error) {
    announce(fmt::format("{} is ignored, because it is damaged: {}", path, error.what()));
    return std::nullopt;
  }
}

void keep_file(const std::string& path, const std::string& text) {
  std::string problem = "is no file";
  std::error_code failed;
  if (!std::filesystem::exists(path, failed) || std::filesystem::is_regular_file(path, failed))
    try {
      write_file(path, text);
      return;
    } catch (const DataError& error) {
      problem = error.what();
    }
  throw ConfigError("--cluster",
                    fmt::format("--cluster {}: what was measured cannot be kept: {}: {}; write it "
                                "elsewhere by `tutti doctor --write-cluster FILE`, and name that",
                                kHere, path, problem));
}

}  // namespace

double direct_time_of(const ClusterConfig& c, double bytes) {
  return stores_of_direct(c) * c.visibility_s +
         memory_time_of(c, direct_bytes(bytes),
                        std::max(direct_bytes(bytes), range_of_direct(c, bytes)));
}

double ring_time_of(const ClusterConfig& c, double bytes) {
  return ring_rounds(c) * c.host_latency_s + ring_bytes(c, bytes) / host_bandwidth_of(c) +
         ring_combines_s(c, bytes);
}

void fit_sums(ClusterConfig& cluster, std::span<const SumTime> times) {
  double best_cache = 0, least = INFINITY;
  const auto smallest = static_cast<double>(times.front().bytes);
  const double largest = range_of_direct(cluster, static_cast<double>(times.back().bytes));
  for (double cache = smallest; cache <= largest; cache *= 1.25) {
    ClusterConfig tried = cluster;
    const double off = fit_direct(tried, times, cache);
    // A cache is faster than the memory behind it.
    if (off >= least || tried.cache_bandwidth < tried.memory_bandwidth) continue;
    least = off;
    best_cache = cache;
  }
  fit_direct(cluster, times, best_cache > 0 ? best_cache : largest);
  fit_ring(cluster, times);
}

MachineFigures measure_this_machine(int64_t workers, const Announce& announce,
                                    const std::atomic<bool>& stop) {
  announce("measuring this machine");
  const Machine machine = machine_description();
  MachineFigures figures;
  ClusterConfig& cluster = figures.cluster;
  const auto cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
  cluster.fabric = FabricKind::kVirtual;
  cluster.workers = cluster.nodes_per_host = workers > 0 ? workers : cores;
  cluster.speed_flops = speed_with(static_cast<int>(std::min(cores, cluster.workers)), stop);
  if (machine.memory_bytes) cluster.memory_bytes = static_cast<double>(*machine.memory_bytes);
  const auto threads = static_cast<int>(machine.hardware_threads.value_or(cores));
  cluster.idle_watts = estimate_energy(1, 0, threads).joules;
  cluster.busy_watts = estimate_energy(1, threads, threads).joules;
  cluster.loop_overhead_s = measure_loop_overhead(cluster.speed_flops, stop);
  const int processes = std::max(2, static_cast<int>(cluster.workers));
  std::vector<std::vector<double>> direct, ring;
  for (int i = 0; i < kLaunches; ++i) {
    direct.push_back(time_sums("direct", processes, kSizes, stop));
    ring.push_back(time_sums("ring", processes, kSizes, stop));
  }
  const auto typical = [](const std::vector<std::vector<double>>& launches, size_t size) {
    std::vector<double> times_s;
    for (const std::vector<double>& launch : launches) times_s.push_back(launch[size]);
    std::sort(times_s.begin(), times_s.end());
    return times_s[times_s.size() / 2];
  };
  for (size_t i = 0; i < kSizes.size(); ++i)
    figures.sums.push_back({kSizes[i], typical(direct, i), typical(ring, i)});
  ClusterConfig fitted = cluster;
  fitted.workers = processes;
  fit_sums(fitted, figures.sums);
  fitted.workers = fitted.nodes_per_host = cluster.workers;
  cluster = fitted;
  return figures;
}

std::string cluster_file_text(const MachineFigures& figures) {
  const ClusterConfig& c = figures.cluster;
  std::string text = heading();
  text += "#\n# Sums between its processes, as measured and as this cluster simulates them:\n";
  ClusterConfig members = c;
  members.workers = std::max<int64_t>(2, c.workers);
  for (const SumTime& sum : figures.sums) {
    const auto bytes = static_cast<double>(sum.bytes);
    text += fmt::format("# {:>9} bytes: direct {:.3g} us ({:.3g}), ring {:.3g} us ({:.3g})\n",
                        sum.bytes, sum.direct_s * 1e6, direct_time_of(members, bytes) * 1e6,
                        sum.ring_s * 1e6, ring_time_of(members, bytes) * 1e6);
  }
  const auto quantity = [](double value, Unit unit) { return human_quantity(value, unit); };
  text += fmt::format(
      "name = \"{}\"\n\n[cluster]\nfabric = \"virtual\"\nworkers = {}\nnodes_per_host = {}\n",
      kHere, c.workers, c.nodes_per_host);
  const auto line = [&](const char* key, double value, Unit unit) {
    text += fmt::format("{} = \"{}\"\n", key, quantity(value, unit));
  };
  line("speed", c.speed_flops, Unit::kFlopsPerSecond);
  line("loop_overhead", c.loop_overhead_s, Unit::kSeconds);
  line("memory", c.memory_bytes, Unit::kBytes);
  line("memory_bandwidth", c.memory_bandwidth, Unit::kBytesPerSecond);
  line("cache", c.cache_bytes, Unit::kBytes);
  line("cache_bandwidth", c.cache_bandwidth, Unit::kBytesPerSecond);
  line("visibility", c.visibility_s, Unit::kSeconds);
  line("host_bandwidth", c.host_bandwidth, Unit::kBytesPerSecond);
  line("host_latency", c.host_latency_s, Unit::kSeconds);
  line("idle_power", c.idle_watts, Unit::kWatts);
  line("busy_power", c.busy_watts, Unit::kWatts);
  return text;
}

bool is_this_machine(const std::string& name) {
  std::error_code failed;
  return name == kHere && !std::filesystem::is_regular_file(name, failed);
}

std::string file_of_this_machine(const std::string& folder, const Announce& announce,
                                 const std::atomic<bool>& stop) {
  std::error_code failed;
  const std::string path = folder + "/here.toml";
  if (const auto hours = age_of(path, announce); hours && *hours < kKept_h) {
    announce(fmt::format("this machine was measured {:.1f} hours ago: {}", *hours, path));
    return path;
  }
  const std::string text = cluster_file_text(measure_this_machine(0, announce, stop));
  std::filesystem::create_directories(folder, failed);
  keep_file(path, text);
  announce(fmt::format("this machine is described in {}", path));
  return path;
}

}  // namespace tutti

// `tutti bench allreduce`: sums of floats between processes of this machine, against Open MPI, gloo
// and a bare loop over shared memory (the bound), all measured alike (bench/peers/peer.h): a
// barrier, then one timed call, the largest time over the processes. Where memory comes to lie
// makes one launch of any of them up to twice as fast as another, so a launch is one observation,
// by its median, and the median of these counts. The implementations take turns; each is launched
// anew.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <thread>

#include "cli/bench.h"
#include "collectives/all_reduce.h"
#include "core/bytes.h"
#include "core/error.h"
#include "fabric/process/process_fabric.h"

namespace tutti {
namespace {

using nlohmann::json;

const std::vector<size_t> kSumSizes = {4096,    16384,   65536,    262144,
                                       1 << 20, 4 << 20, 16 << 20, 64 << 20};

// Enough for the caches to settle: at 1 MiB the first fifty sums take twice as long as later ones.
int sum_repetitions(size_t bytes) {
  return bytes <= 65536 ? 1000 : bytes <= (1 << 20) ? 400 : bytes <= (16 << 20) ? 40 : 10;
}

// bytes -> samples in microseconds
using Samples = std::map<size_t, std::vector<double>>;

// mpirun binds its ranks to cores when there are enough, and so do the peers; so do we, to measure
// the sums and not the scheduler.
void bind_to_core(const Endpoint& endpoint) {
  if (static_cast<unsigned>(endpoint.size()) > std::thread::hardware_concurrency()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(endpoint.rank()), &set);
  sched_setaffinity(0, sizeof(set), &set);
}

std::string measure(Node& node, const std::string& name) {
  bind_to_core(node.endpoint());
  const TopologyEntry& entry = topology(name);
  Group group{.ranks = {}, .index = static_cast<size_t>(node.endpoint().rank()), .racks = {}};
  for (int rank = 0; rank < node.endpoint().size(); ++rank) group.ranks.push_back(rank);
  Window& window = *node.endpoint().open_window(kSumSizes.back(), node.timeout_s());
  const std::span<std::byte> memory = window.of(node.endpoint().rank());
  std::fill(memory.begin(), memory.end(), std::byte{0});
  const auto direct = make_direct_all_reduce(node, nullptr, window, kSumFloat);
  const auto barrier = [&] {
    direct->start(memory.first(0), Tag(Purpose::kControl, 0));
    direct->finish();
  };
  json result = json::object();
  for (const size_t bytes : kSumSizes) {
    std::unique_ptr<AllReduce> messages;
    if (entry.rounds)
      messages =
          make_all_reduce(node, nullptr, entry.rounds(group, bytes / sizeof(float)), kSumFloat);
    AllReduce& sum = entry.rounds ? *messages : *direct;
    const int repeat = sum_repetitions(bytes);
    const int warm_up = 3 + repeat / 10;
    std::vector<double> samples_us;
    for (int i = 0; i < warm_up + repeat; ++i) {
      barrier();
      const double begin = node.clock().now();
      sum.start(memory.first(bytes), Tag(Purpose::kGradient, static_cast<uint64_t>(i)));
      sum.finish();
      if (i >= warm_up) samples_us.push_back((node.clock().now() - begin) * 1e6);
    }
    barrier();
    result[std::to_string(bytes)] = samples_us;
  }
  return result.dump();
}

using Medians = std::map<size_t, double>;  // bytes -> microseconds

Medians medians_of(const Samples& samples) {
  Medians result;
  for (const auto& [bytes, values] : samples) result[bytes] = median(values);
  return result;
}

Samples run_own(const std::string& name, int processes, const std::atomic<bool>& stop) {
  const auto fabric =
      make_process_fabric(std::vector<std::string>(static_cast<size_t>(processes), "worker"));
  const auto outcomes = fabric->run([&](Node& node) { return measure(node, name); }, stop);
  Samples slowest;
  for (const NodeOutcome& outcome : outcomes) {
    if (outcome.kind != NodeOutcome::Kind::kDone)
      throw Error(fmt::format("bench {}: {}", name, outcome.error));
    const json measured = json::parse(outcome.result);
    for (const auto& [bytes, samples] : measured.items()) {
      auto& mine = slowest[std::stoul(bytes)];
      mine.resize(samples.size());
      for (size_t i = 0; i < mine.size(); ++i)
        mine[i] = std::max(mine[i], samples[i].get<double>());
    }
  }
  return slowest;
}

// Runs a peer once per number of repetitions that the sizes share.
Samples run_peer(const std::string& name, int processes) {
  const std::string program = program_folder() + "/peer_" + name;
  Samples samples;
  if (!std::filesystem::exists(program)) return samples;
  std::map<int, std::string> sizes;
  for (const size_t bytes : kSumSizes) {
    std::string& list = sizes[sum_repetitions(bytes)];
    list += (list.empty() ? "" : ",") + std::to_string(bytes);
  }
  for (const auto& [repeat, list] : sizes) {
    std::string command =
        fmt::format("{} --processes {} --reps {} --bytes {}", program, processes, repeat, list);
    if (name == "openmpi_allreduce") {
      const bool crowded = static_cast<unsigned>(processes) > std::thread::hardware_concurrency();
      command = fmt::format("mpirun --allow-run-as-root --oversubscribe {} -np {} {}",
                            crowded ? "--mca mpi_yield_when_idle 1" : "", processes, command);
    }
    std::istringstream lines(output_of(command));
    for (std::string line; std::getline(lines, line);) {
      const json entry = json::parse(line, nullptr, false);
      if (!entry.is_object()) continue;
      auto& mine = samples[entry.at("bytes").get<size_t>()];
      for (const json& value : entry.at("samples_us")) mine.push_back(value);
    }
  }
  return samples;
}

// Our own in a program of its own, as the peers are.
Medians launch_own(const std::string& name, int processes) {
  Medians result;
  const json entries =
      json::parse(output_of(fmt::format(
                      "{}/tutti bench allreduce --only {} --processes {} --rounds 1 --json -q",
                      program_folder(), name, processes)),
                  nullptr, false);
  if (!entries.is_array()) throw Error(fmt::format("bench allreduce: {} failed", name));
  for (const json& entry : entries)
    if (entry.at("impl") == name) result[entry.at("bytes")] = entry.at("median_us");
  return result;
}

struct Implementation {
  std::string name;
  std::string peer;  // empty: our own
};
const std::vector<Implementation> kImplementations = {{"direct", ""},
                                                      {"ring", ""},
                                                      {"butterfly", ""},
                                                      {"openmpi", "openmpi_allreduce"},
                                                      {"gloo", "gloo_allreduce"},
                                                      {"shared loop", "shared_loop"}};

void print_table(const std::map<std::string, std::map<size_t, double>>& medians, int processes) {
  fmt::print("\n{} processes, median us", processes);
  fmt::print("\n{:>10}", "bytes");
  for (const Implementation& implementation : kImplementations)
    fmt::print(" {:>12}", implementation.name);
  fmt::print(" {:>13} {:>13}\n", "peers/direct", "direct/bound");
  const auto at = [&](const std::string& name, size_t bytes) {
    const auto found = medians.find(name);
    return found == medians.end() || !found->second.count(bytes) ? 0 : found->second.at(bytes);
  };
  for (const size_t bytes : kSumSizes) {
    fmt::print("{:>10}", bytes);
    for (const Implementation& implementation : kImplementations) {
      const double value = at(implementation.name, bytes);
      if (value > 0)
        fmt::print(" {:>12.2f}", value);
      else
        fmt::print(" {:>12}", "-");
    }
    double peer = 0;
    for (const char* name : {"openmpi", "gloo"})
      if (const double value = at(name, bytes); value > 0 && (peer == 0 || value < peer))
        peer = value;
    const double direct = at("direct", bytes), bound = at("shared loop", bytes);
    fmt::print(" {:>12.1f}x {:>12.2f}x\n", direct > 0 ? peer / direct : 0,
               bound > 0 ? direct / bound : 0);
  }
}

}  // namespace

json bench_allreduce(const BenchOptions& options, const std::atomic<bool>& stop) {
  json result = json::array();
  const bool only_launch = options.rounds == 1 && options.only.size() == 1;
  for (const int processes :
       options.processes.empty() ? std::vector<int>{2, 4} : options.processes) {
    std::map<std::string, Samples> all;  // a median of each launch
    for (int round = 0; round < options.rounds && !stop; ++round) {
      say(options, fmt::format("allreduce, {} processes: round {} of {}", processes, round + 1,
                               options.rounds));
      for (const Implementation& implementation : kImplementations) {
        if (!wanted(options, implementation.name)) continue;
        const Medians medians =
            !implementation.peer.empty() ? medians_of(run_peer(implementation.peer, processes))
            : only_launch                ? medians_of(run_own(implementation.name, processes, stop))
                                         : launch_own(implementation.name, processes);
        for (const auto& [bytes, value] : medians) all[implementation.name][bytes].push_back(value);
      }
    }
    std::map<std::string, std::map<size_t, double>> medians;
    for (const auto& [name, samples] : all)
      for (const auto& [bytes, values] : samples) {
        medians[name][bytes] = median(values);
        result.push_back({{"impl", name},
                          {"processes", processes},
                          {"bytes", bytes},
                          {"median_us", medians[name][bytes]},
                          {"launches", values.size()}});
      }
    if (!options.json) print_table(medians, processes);
  }
  return result;
}

}  // namespace tutti

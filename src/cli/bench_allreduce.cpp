// `tutti bench allreduce`: sums of floats between processes of this machine, against Open MPI, gloo
// and a bare loop over shared memory (the bound), all measured alike (bench/peers/peer.h): a
// barrier, then one timed call, the largest time over the processes. Where memory comes to lie
// makes one launch of any of them up to twice as fast as another, so a launch is one observation,
// by its median, and the median of these counts; ratios are taken within a round. The
// implementations take turns; each is launched anew.
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
#include "fabric/exchange.h"
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

constexpr int kBarrierSlot = Window::kSlots - 1;  // `direct` has the first ones

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
  // In slots of its own, so that `direct` sums the same buffer again and again, as in training.
  uint64_t met = 0;
  const auto barrier = [&] {
    window.post(kBarrierSlot, ++met);
    for (Rank rank = 0; rank < node.endpoint().size(); ++rank)
      if (rank != node.endpoint().rank())
        require_done(node, window.await(rank, kBarrierSlot, met, node.timeout_s()));
  };
  json result = json::object();
  for (const size_t bytes : kSumSizes) {
    std::unique_ptr<AllReduce> messages;
    if (entry.rounds)
      messages =
          make_all_reduce(node, nullptr, entry.rounds, group, bytes / sizeof(float), kSumFloat);
    AllReduce& sum = entry.rounds ? *messages : *direct;
    const int repeat = sum_repetitions(bytes);
    const int warm_up = 3 + repeat / 10;
    std::vector<double> samples_us;
    for (int i = 0; i < warm_up + repeat; ++i) {
      barrier();
      const double begin = node.clock().now();
      sum.start(memory.first(bytes), Tag(Purpose::kGradient, Tag::wrapped(i)));
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
  require_all_done(outcomes, "allreduce " + name, stop);
  Samples slowest;
  for (const NodeOutcome& outcome : outcomes) {
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

struct Implementation {
  std::string name;
  std::string peer;  // empty: our own
  bool by_mpirun = false;
};
// In this order: what is compared most closely runs one right after the other.
const std::vector<Implementation> kImplementations = {{"direct", ""},
                                                      {"shared loop", "shared_loop"},
                                                      {"openmpi", "openmpi_allreduce", true},
                                                      {"ring", ""},
                                                      {"butterfly", ""},
                                                      {"gloo", "gloo_allreduce"}};

// Runs a peer once per number of repetitions that the sizes share.
Samples run_peer(const Implementation& peer, int processes, const std::atomic<bool>& stop) {
  const std::string program = program_folder() + "/peer_" + peer.peer;
  Samples samples;
  if (!std::filesystem::exists(program)) return samples;
  std::map<int, std::string> sizes;
  for (const size_t bytes : kSumSizes) {
    std::string& list = sizes[sum_repetitions(bytes)];
    list += (list.empty() ? "" : ",") + std::to_string(bytes);
  }
  for (const auto& [repeat, list] : sizes) {
    Words command = {program,  "--processes",          std::to_string(processes),
                     "--reps", std::to_string(repeat), "--bytes",
                     list};
    if (peer.by_mpirun) {
      Words launcher = {"mpirun", "--allow-run-as-root", "--oversubscribe"};
      if (static_cast<unsigned>(processes) > std::thread::hardware_concurrency())
        launcher.insert(launcher.end(), {"--mca", "mpi_yield_when_idle", "1"});
      launcher.insert(launcher.end(), {"-np", std::to_string(processes)});
      command.insert(command.begin(), launcher.begin(), launcher.end());
    }
    std::istringstream lines(output_of(command, stop));
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
Medians launch_own(const std::string& name, int processes, const std::atomic<bool>& stop) {
  Medians result;
  const json entries = json::parse(
      output_of({program_folder() + "/tutti", "bench", "allreduce", "--only", name, "--processes",
                 std::to_string(processes), "--rounds", "1", "--json", "-q"},
                stop),
      nullptr, false);
  if (!entries.is_array()) throw Error(fmt::format("bench allreduce: {} failed", name));
  for (const json& entry : entries)
    if (entry.at("impl") == name) result[entry.at("bytes")] = entry.at("median_us");
  return result;
}

using Launches = std::map<std::string, Samples>;  // name -> bytes -> the median of each launch

std::vector<double> launches_of(const Launches& all, const std::string& name, size_t bytes) {
  const auto found = all.find(name);
  if (found == all.end() || !found->second.contains(bytes)) return {};
  return found->second.at(bytes);
}

// How many times as long as the other, round by round, and the median of that: the machine changes
// its speed between rounds more than within one. 0: one of them was not measured.
double times_as_long(const Launches& all, const std::string& name, const std::string& other,
                     size_t bytes) {
  const std::vector<double> own = launches_of(all, name, bytes);
  const std::vector<double> base = launches_of(all, other, bytes);
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(own.size(), base.size()); ++i) ratios.push_back(own[i] / base[i]);
  return ratios.empty() ? 0 : median(ratios);
}

void print_table(const Launches& all, int processes) {
  fmt::print("\n{} processes, median us", processes);
  fmt::print("\n{:>10}", "bytes");
  for (const Implementation& implementation : kImplementations)
    fmt::print(" {:>12}", implementation.name);
  fmt::print(" {:>13} {:>13}\n", "peers/direct", "direct/bound");
  for (const size_t bytes : kSumSizes) {
    fmt::print("{:>10}", bytes);
    for (const Implementation& implementation : kImplementations) {
      const std::vector<double> values = launches_of(all, implementation.name, bytes);
      fmt::print(" {:>12}", values.empty() ? "-" : fmt::format("{:.2f}", median(values)));
    }
    double better_peer = 0;
    for (const char* name : {"openmpi", "gloo"})
      if (const double ratio = times_as_long(all, name, "direct", bytes);
          ratio > 0 && (better_peer == 0 || ratio < better_peer))
        better_peer = ratio;
    fmt::print(" {:>12.1f}x {:>12.2f}x\n", better_peer,
               times_as_long(all, "direct", "shared loop", bytes));
  }
}

}  // namespace

json bench_allreduce(const BenchOptions& options, const std::atomic<bool>& stop) {
  json result = json::array();
  const bool only_launch = options.rounds == 1 && options.only.size() == 1;
  for (const int processes :
       options.processes.empty() ? std::vector<int>{2, 4} : options.processes) {
    Launches all;
    for (int round = 0; round < options.rounds && !stop; ++round) {
      say(options, fmt::format("allreduce, {} processes: round {} of {}", processes, round + 1,
                               options.rounds));
      for (const Implementation& implementation : kImplementations) {
        if (!wanted(options, implementation.name)) continue;
        const Medians medians =
            !implementation.peer.empty() ? medians_of(run_peer(implementation, processes, stop))
            : only_launch                ? medians_of(run_own(implementation.name, processes, stop))
                                         : launch_own(implementation.name, processes, stop);
        for (const auto& [bytes, value] : medians) all[implementation.name][bytes].push_back(value);
      }
    }
    leave_if_stopped(stop);
    for (const auto& [name, samples] : all)
      for (const auto& [bytes, values] : samples)
        result.push_back({{"impl", name},
                          {"processes", processes},
                          {"bytes", bytes},
                          {"median_us", median(values)},
                          {"to_direct", times_as_long(all, name, "direct", bytes)},
                          {"launches", values.size()}});
    if (!options.json) print_table(all, processes);
  }
  return result;
}

}  // namespace tutti

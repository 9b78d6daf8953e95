// `tutti bench ps`: the parameter server between processes of this machine.
//
// Dense: two workers push a gradient of so many bytes to one or two servers and pull as many back,
// step by step, in lockstep and with plain SGD on the servers: the whole strategy, but for a model
// that computes nothing. The bound is what two workers need to copy as many bytes to shared memory
// and back, as STREAM does, from and to memory that no cache holds; what they need when it is the
// same bytes every time stands beside it. And the step of LeNet against that of the all-reduce in
// shared memory.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "cli/bench.h"
#include "core/bytes.h"
#include "core/error.h"
#include "fabric/exchange.h"
#include "fabric/process/process_fabric.h"
#include "jobs/job.h"
#include "models/model.h"
#include "models/model_config.h"
#include "strategies/windows.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr int kWorkers = 2;
constexpr size_t kStreamBytes = 128 << 20;  // four times the cache of the machines we know
const std::vector<size_t> kSizes = {64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};

int repetitions(size_t bytes) { return bytes <= (1 << 20) ? 200 : bytes <= (4 << 20) ? 60 : 20; }
int warm_up(size_t bytes) { return repetitions(bytes) / 5; }

Job job_of(size_t bytes, int servers) {
  const int steps = warm_up(bytes) + repetitions(bytes);
  return load_job(
      "", {"name=bench", "task.data.kind=synthetic-linear",
           fmt::format("task.data.samples={}", 4 * (steps + 8)), "task.data.features=1",
           "task.model=linear", "task.epochs=1", fmt::format("task.global_batch={}", kWorkers),
           fmt::format("task.max_steps={}", steps), "optimizer.kind=sgd",
           "strategy.kind=parameter_server", fmt::format("strategy.servers={}", servers),
           fmt::format("cluster.workers={}", kWorkers)});
}

// Takes part in the job with one layer of `bytes` of parameters, and tells how long steps took.
std::string train(Node& node, const Job& job, const Data& data, size_t bytes) {
  const auto features = static_cast<int64_t>(bytes / sizeof(float)) - 1;
  const Architecture architecture = make_architecture(ModelConfig("linear"), {features}, 0);
  const size_t count = architecture.parameter_count;
  Log log;
  const Plan plan =
      job.strategy->plan({job.task, job.cluster, job.optimizer, architecture, sizes_of(data)});
  const SharedMemory shared = open_windows(node, plan, log);
  Buffer<float> parameters(count), own(shared.gradients.empty() ? count : 0);
  const std::span<float> gradients = shared.gradients.empty() ? own.span() : shared.gradients;
  std::fill_n(parameters.data(), parameters.size(), 0.0f);
  std::fill(gradients.begin(), gradients.end(), 0.0f);
  const auto model = kCostModels.whole(architecture, {parameters.span(), gradients}, {});
  NodeModel node_model(*model);
  Stopwatch watch(node.clock());
  Recorder recorder;
  std::vector<Rank> members(kWorkers);
  std::iota(members.begin(), members.end(), 0);
  Context context{node,       plan,          job.task, job.cluster, job.optimizer, data,
                  node_model, shared.window, watch,    recorder,    log,           members};
  job.strategy->run(context);
  std::vector<double> samples_us;
  const std::vector<StepRow>& steps = recorder.steps();
  for (size_t i = static_cast<size_t>(warm_up(bytes)); i + 1 < steps.size(); ++i)
    samples_us.push_back((steps[i + 1].time_s - steps[i].time_s) * 1e6);
  return json(samples_us).dump();
}

// Copies as much to the window and back, all workers at once: the next bytes of more memory than
// caches hold, or always the same.
std::string copy(Node& node, size_t bytes, bool cached) {
  const size_t all = cached ? bytes : std::max(bytes, kStreamBytes);
  Window& window = *node.endpoint().open_window(2 * all, node.timeout_s());
  const std::span<std::byte> shared = window.of(node.endpoint().rank());
  Buffer<std::byte> own(all);
  std::fill_n(own.data(), all, std::byte{0});
  std::fill(shared.begin(), shared.end(), std::byte{0});
  uint64_t rounds = 0;
  const auto barrier = [&] {
    window.post(0, ++rounds);
    for (Rank rank = 0; rank < node.endpoint().size(); ++rank)
      require_done(node, window.await(rank, 0, rounds, node.timeout_s()));
  };
  std::vector<double> samples_us;
  for (int i = 0; i < warm_up(bytes) + repetitions(bytes); ++i) {
    barrier();
    const size_t at = static_cast<size_t>(i) * bytes % all;
    const double begin = node.clock().now();
    std::copy_n(own.data() + at, bytes, shared.data() + at);
    std::copy_n(shared.data() + all + at, bytes, own.data() + at);
    if (i >= warm_up(bytes)) samples_us.push_back((node.clock().now() - begin) * 1e6);
  }
  barrier();
  return json(samples_us).dump();
}

constexpr int kStream = 0, kCached = -1;  // in place of a number of servers: copies

// The slower of both workers at each step.
std::vector<double> measure(size_t bytes, int servers, const std::atomic<bool>& stop) {
  std::vector<std::string> roles(kWorkers, "worker");
  roles.insert(roles.end(), static_cast<size_t>(std::max(0, servers)), "server");
  const Job job = job_of(bytes, std::max(1, servers));
  const Data data = load_data(job.task.data, job.task.seed, "");
  const auto outcomes = make_process_fabric(roles)->run(
      [&](Node& node) {
        return servers <= 0 ? copy(node, bytes, servers == kCached) : train(node, job, data, bytes);
      },
      stop);
  require_all_done(outcomes, "ps", stop);
  std::vector<double> slowest;
  for (const NodeOutcome& outcome : outcomes) {
    const auto samples = json::parse(outcome.result).get<std::vector<double>>();
    slowest.resize(std::max(slowest.size(), samples.size()));
    for (size_t i = 0; i < samples.size(); ++i) slowest[i] = std::max(slowest[i], samples[i]);
  }
  return slowest;
}

json bench_dense(const BenchOptions& options, const std::atomic<bool>& stop) {
  const std::vector<int> cases = {kStream, kCached, 1, 2};
  std::map<size_t, std::map<int, std::vector<double>>> samples_us;
  for (int round = 0; round < options.rounds && !stop; ++round) {
    say(options, fmt::format("ps, dense: round {} of {}", round + 1, options.rounds));
    for (const size_t bytes : kSizes)
      for (const int servers : cases)
        if (const auto more = measure(bytes, servers, stop); !more.empty())
          samples_us[bytes][servers].insert(samples_us[bytes][servers].end(), more.begin(),
                                            more.end());
  }
  leave_if_stopped(stop);
  json result = json::array();
  if (!options.json)
    fmt::print(
        "\npush and pull, {} workers, median GB/s of each worker\n"
        "{:>10} {:>10} {:>10} {:>10} {:>9} {:>10} {:>9}\n",
        kWorkers, "bytes", "in cache", "copies", "1 server", "/copies", "2 servers", "/copies");
  for (const auto& [bytes, all] : samples_us) {
    std::map<int, double> rate;
    for (const auto& [servers, values] : all)
      rate[servers] = 2.0 * static_cast<double>(bytes) / median(values) / 1e3;
    for (const int servers : {1, 2})
      result.push_back({{"what", "dense"},
                        {"bytes", bytes},
                        {"servers", servers},
                        {"workers", kWorkers},
                        {"gb_per_s", rate[servers]},
                        {"copy_gb_per_s", rate[kStream]},
                        {"cached_copy_gb_per_s", rate[kCached]},
                        {"share", rate[servers] / rate[kStream]},
                        {"samples", all.at(servers).size()}});
    if (!options.json)
      fmt::print("{:>10} {:>10.2f} {:>10.2f} {:>10.2f} {:>8.0f}% {:>10.2f} {:>8.0f}%\n", bytes,
                 rate[kCached], rate[kStream], rate[1], 100 * rate[1] / rate[kStream], rate[2],
                 100 * rate[2] / rate[kStream]);
  }
  return result;
}

json bench_lenet(const BenchOptions& options, const std::atomic<bool>& stop) {
  std::vector<double> direct, servers;
  for (int round = 0; round < options.rounds && !stop; ++round) {
    say(options, fmt::format("ps, LeNet: round {} of {}", round + 1, options.rounds));
    const std::vector<std::string> two = {"cluster.workers=2", "task.global_batch=128"};
    std::vector<std::string> sets = {"strategy.kind=allreduce", "strategy.topology=direct"};
    sets.insert(sets.end(), two.begin(), two.end());
    direct.push_back(lenet_rate(sets, stop));
    sets = {"strategy.kind=parameter_server", "strategy.servers=2"};
    sets.insert(sets.end(), two.begin(), two.end());
    servers.push_back(lenet_rate(sets, stop));
  }
  leave_if_stopped(stop);
  const double step_ratio = median(direct) / median(servers);
  if (!options.json)
    fmt::print(
        "\nLeNet, 2 x 64 samples: {:.0f} samples/s by direct all-reduce, {:.0f} with 2 "
        "servers: a step takes {:.2f} times as long\n",
        median(direct), median(servers), step_ratio);
  return {{{"what", "lenet"},
           {"direct_samples_per_s", median(direct)},
           {"servers_samples_per_s", median(servers)},
           {"step_ratio", step_ratio},
           {"rounds", direct.size()}}};
}

}  // namespace

json bench_ps(const BenchOptions& options, const std::atomic<bool>& stop) {
  json result = json::array();
  if (wanted(options, "dense")) result = bench_dense(options, stop);
  if (wanted(options, "lenet"))
    for (json& entry : bench_lenet(options, stop)) result.push_back(std::move(entry));
  if (wanted(options, "sparse"))
    for (json& entry : bench_ps_sparse(options, stop)) result.push_back(std::move(entry));
  return result;
}

}  // namespace tutti

// `tutti bench advise`: does the advice hold on a real network?
//
// Four network namespaces of this machine, their links shaped by token buckets, are described as a
// cluster by what is measured of them: the speed of a core, the latency of a small message, and
// that all four nodes share the cores that there are. `tutti advise` is asked about that cluster;
// then each strategy is trained for real between the namespaces, by the jobs that were advised.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
#include <thread>

#include "cli/advice_study.h"
#include "cli/bench.h"
#include "cli/between_hosts.h"
#include "collectives/all_reduce.h"
#include "core/bytes.h"
#include "core/error.h"
#include "jobs/run_folder.h"
#include "testbed/this_machine.h"
#include "testbed/variants.h"

namespace tutti {
namespace {

using nlohmann::json;
using process::NamespacedNetwork;

constexpr int kHosts = 4;
constexpr int kSeeds = 3;
const std::vector<double> kBandwidths = {100e6, 1e9};  // bits per second
const std::vector<std::string_view> kAsked = {"solo",         "ring",
                                              "butterfly",    "tree",
                                              "ps-bsp",       "ps-bsp-1",
                                              "ps-ssp3",      "ps-asp",
                                              "local-sgd-16", "gossip-ring",
                                              "gossip-async", "pipeline-1f1b",
                                              "tensor",       "elastic-averaging",
                                              "fedavg"};

// Tasks whose computing is a small part of a step: two cores compute for four nodes. The faster the
// network, the lower the rate: where steps are short more of them are needed, or the connections
// that are made in the beginning would be most of what is measured.
struct AdvisedCase {
  std::string name;
  std::vector<std::string> settings;
  std::vector<double> rates;  // one for each of kBandwidths
};

const std::vector<AdvisedCase>& cases() {
  static const std::vector<AdvisedCase> all = {
      {"mushrooms",
       {"task.data={kind=\"fann\", "
        "path=\"/usr/share/doc/libfann-dev/examples/datasets/mushroom.train\", "
        "test_path=\"/usr/share/doc/libfann-dev/examples/datasets/mushroom.test\", "
        "standardise=false}",
        "task.model={kind=\"mlp\", hidden=[512, 256]}", "task.global_batch=128", "task.epochs=40",
        "task.target=0.98", "task.eval_every=0.5", "optimizer.kind=sgd"},
       {0.1, 0.02}},
      {"thyroid",
       {"task.data={kind=\"fann\", "
        "path=\"/usr/share/doc/libfann-dev/examples/datasets/thyroid.train\", "
        "test_path=\"/usr/share/doc/libfann-dev/examples/datasets/thyroid.test\", "
        "standardise=true, validation=0.2}",
        "task.model={kind=\"mlp\", hidden=[512, 256]}", "task.global_batch=64", "task.epochs=40",
        "task.target=0.955", "task.eval_every=0.5", "optimizer.kind=adam"},
       {0.004, 0.0005}}};
  return all;
}

std::string job_text(const AdvisedCase& one, double rate) {
  std::vector<std::string> settings = one.settings;
  settings.push_back(fmt::format("optimizer.lr={}", rate));
  settings.emplace_back("task.stop_at_target=true");
  Job job = load_job("", settings);
  job.name = one.name;
  return resolved_toml(job);
}

// The hosts as a cluster: what is measured of this machine, whose cores all of them share, and
// links of this bandwidth.
std::string cluster_text(const ClusterConfig& machine, double bits_per_s, double latency_s) {
  return fmt::format(
      "# Written by `tutti bench advise`: {0} network namespaces that share the cores of one "
      "machine.\n[cluster]\nfabric = \"virtual\"\nworkers = {0}\nshared_cores = {1}\n"
      "speed = \"{2:.3f} GFLOP/s\"\nloop_overhead = \"{3:.1f} ns\"\n"
      "memory_bandwidth = \"{4:.2f} GB/s\"\ncache = \"{5:.2f} MB\"\n"
      "cache_bandwidth = \"{6:.2f} GB/s\"\nhost_bandwidth = \"{7:.2f} GB/s\"\n"
      "host_latency = \"{8:.1f} ns\"\nbandwidth = \"{9:.0f} Mbit/s\"\nlatency = \"{10:.2f} us\"\n",
      kHosts, std::thread::hardware_concurrency(), machine.speed_flops / 1e9,
      machine.loop_overhead_s * 1e9, machine.memory_bandwidth / 1e9, machine.cache_bytes / 1e6,
      machine.cache_bandwidth / 1e9, machine.host_bandwidth / 1e9, machine.host_latency_s * 1e9,
      bits_per_s / 1e6, latency_s * 1e6);
}

// A link has half the latency between two hosts: a message passes two of them.
double link_latency_s(const NamespacedNetwork& network, const std::atomic<bool>& stop) {
  const auto ping = [](Node& node) { return json(one_way_s(node)).dump(); };
  return run_between_hosts(network, kHosts, ping, stop)[0].get<double>() / 2;
}

// Bytes per second that so many nodes together send when nothing holds them back but these cores.
double unshaped_rate(const NamespacedNetwork& network, int hosts, const std::atomic<bool>& stop) {
  constexpr size_t kValues = 2'000'000;
  constexpr int kTimes = 5;
  network.shape(0);
  const auto sums = [](Node& node) {
    const int size = node.endpoint().size();
    Group group{.ranks = {}, .index = static_cast<size_t>(node.endpoint().rank()), .racks = {}};
    for (Rank rank = 0; rank < size; ++rank) group.ranks.push_back(rank);
    Buffer<float> values(kValues);
    std::fill_n(values.data(), kValues, 1.0F);
    const auto sum =
        make_all_reduce(node, nullptr, topology("ring").rounds, group, kValues, kSumFloat);
    json times = json::array();
    for (uint64_t i = 0; i < kTimes; ++i) {
      const double start_s = node.clock().now();
      sum->start(writable_bytes_of(values.span()), Tag(Purpose::kGradient, Tag::wrapped(i)));
      sum->finish();
      times.push_back(node.clock().now() - start_s);
    }
    return times.dump();
  };
  const json times = run_between_hosts(network, hosts, sums, stop)[0];
  const double bytes = 2.0 * (hosts - 1) * kValues * sizeof(float);
  return bytes / median(times.get<std::vector<double>>());
}

json advice_on(const std::string& job, const std::string& cluster, const BenchOptions& options,
               const std::atomic<bool>& stop) {
  std::string names;
  for (const std::string_view name : kAsked)
    if (wanted(options, name)) names += (names.empty() ? "" : ",") + std::string(name);
  const std::string text =
      output_of({program_folder() + "/tutti", "advise", job, "--cluster", cluster, "--strategies",
                 names, "--seeds", std::to_string(std::min(kSeeds, options.rounds)), "--quick",
                 "--complete", "--no-cache", "--budget", "1h", "--json", "--quiet"},
                stop);
  const json advice = json::parse(text, nullptr, false);
  if (!advice.is_object()) throw Error("the advice that was to be measured failed");
  return advice;
}

// Puts a planned job on the hosts. The virtual cluster's hosts are the namespaces.
HostsTraining training_of(const ComparedJob& planned, int seed, const TemporaryFolder& folder) {
  Job job = with_settings(planned.job, {});
  const ClusterConfig simulated = job.cluster;
  const auto nodes = std::ssize(planned.plan.nodes);
  HostsTraining training;
  for (int64_t node = 1; node < nodes; ++node)
    training.guests.push_back(static_cast<int>(host_of(simulated, node)));
  job.cluster = ClusterConfig();
  job.cluster.workers = simulated.workers;
  job.cluster.remote = simulated.workers - 1;
  job.cluster.remote_servers = nodes > simulated.workers;
  job.cluster.listen = NamespacedNetwork::address(0) + ":0";
  job.task.seed = static_cast<uint64_t>(seed);
  const std::string name = fmt::format("{}-{}", planned.job.name, seed);
  training.job = folder / (name + ".toml");
  training.run = folder / name;
  write_file(training.job, resolved_toml(job));
  return training;
}

// The times of one training. Reading the data is no part of an advice, and neither is what the
// first step takes longer than others, because LibTorch then chooses its kernels.
struct Outcome {
  std::optional<double> time_s, step_s;
  double bytes_per_s = 0, first_step_s = 0;
};

// Returns 0 where nobody on the launcher's host kept a series, as with a server elsewhere.
double excess_of_first_step(const std::string& run, double data_s) {
  if (!std::filesystem::exists(run + "/series.csv")) return 0;
  std::vector<double> times;
  std::istringstream series(read_file(run + "/series.csv"));
  std::string line;
  std::getline(series, line);
  while (std::getline(series, line)) {
    const size_t begin = line.find(',') + 1;
    times.push_back(std::stod(line.substr(begin, line.find(',', begin) - begin)));
  }
  std::vector<double> steps;
  for (size_t i = 1; i < times.size(); ++i) steps.push_back(times[i] - times[i - 1]);
  return steps.empty() ? 0 : std::max(0.0, times.front() - data_s - median(steps));
}

Outcome outcome_of(const json& record, const std::string& run) {
  const json& time = record.at("time");
  const double data_s = time.at("data_s").get<double>();
  Outcome outcome;
  outcome.first_step_s = excess_of_first_step(run, data_s);
  outcome.bytes_per_s =
      record.at("bytes_sent").get<double>() / (time.at("total_s").get<double>() - data_s);
  if (time.at("to_target_s").is_null() || record.at("steps_to_target").is_null()) return outcome;
  outcome.time_s = time.at("to_target_s").get<double>() - data_s - outcome.first_step_s;
  outcome.step_s = *outcome.time_s / record.at("steps_to_target").get<double>();
  return outcome;
}

// Takes the medians of what the seeds of one strategy took.
void conclude(AdvisedTraining& training, const std::vector<Outcome>& outcomes,
              double unshaped_rate) {
  std::vector<double> times, steps, rates, first_steps;
  for (const Outcome& outcome : outcomes) {
    first_steps.push_back(outcome.first_step_s);
    rates.push_back(outcome.bytes_per_s);
    if (!outcome.time_s) continue;
    times.push_back(*outcome.time_s);
    steps.push_back(*outcome.step_s);
  }
  training.seeds = static_cast<int>(outcomes.size());
  training.reached = static_cast<int>(times.size());
  training.bytes_per_s = median(rates);
  training.first_step_s = median(first_steps);
  if (times.empty()) {
    training.left_out = "no seed reached the target";
    return;
  }
  training.measured_s = median(times);
  training.measured_step_s = median(steps);
  if (training.bytes_per_s > unshaped_rate / 2)
    training.left_out = fmt::format(
        "its traffic, {:.2g} GB/s, is more than half of the {:.2g} GB/s that these "
        "cores move unshaped",
        training.bytes_per_s / 1e9, unshaped_rate / 1e9);
}

void print_training(const std::string& task, double bits_per_s, const AdvisedTraining& t) {
  const auto percent = [](double predicted, const std::optional<double>& measured) {
    return measured ? fmt::format("{:+.1f}%", 100 * (predicted / *measured - 1)) : "";
  };
  fmt::print(
      "{:<10} {:>6.0f} {:<18} {:>9.2f} {:>9.2f} {:>8} {:>9.3f} {:>9.3f} {:>8} {:>7.0f}%  {}"
      "\n",
      task, bits_per_s / 1e6, t.name, t.measured_step_s.value_or(0) * 1e3, t.predicted_step_s * 1e3,
      percent(t.predicted_step_s, t.measured_step_s), t.measured_s.value_or(0), t.predicted_s,
      percent(t.predicted_s, t.measured_s), 100 * t.error,
      t.left_out.empty() ? fmt::format("{} of {}", t.reached, t.seeds) : t.left_out);
}

// The strategies of an advice that have a time, with the jobs that it is about.
struct Advised {
  std::vector<AdvisedTraining> trainings;
  std::map<std::string, ComparedJob> jobs;
};

Advised advised_by(const json& advice, const TemporaryFolder& folder) {
  Advised result;
  write_file(folder / "advised.toml", advice.at("job").get<std::string>());
  std::vector<std::string> names;
  for (const json& choice : advice.at("choices")) {
    if (choice.at("time_s").is_null()) continue;
    AdvisedTraining training;
    training.name = choice.at("name").get<std::string>();
    training.predicted_s = choice.at("time_s").get<double>();
    training.predicted_step_s = choice.at("step_s").get<double>();
    training.error = choice.at("error").is_null() ? 0 : choice.at("error").get<double>();
    names.push_back(training.name);
    result.trainings.push_back(training);
  }
  if (names.empty()) throw Error("nothing that was advised reaches the target");
  for (ComparedJob& planned : compared_jobs(load_job(folder / "advised.toml", {}), names))
    result.jobs.emplace(planned.job.name, std::move(planned));
  return result;
}

void study(AdviceStudy& study, const AdvisedCase& one, const NamespacedNetwork& network,
           const ClusterConfig& machine, double bits_per_s, double rate, double unshaped,
           const BenchOptions& options, const std::atomic<bool>& stop) {
  const TemporaryFolder folder;
  network.shape(bits_per_s);
  const double latency_s = link_latency_s(network, stop);
  const std::string cluster = cluster_text(machine, bits_per_s, latency_s);
  write_file(folder / "job.toml", job_text(one, rate));
  write_file(folder / "cluster.toml", cluster);
  say(options, fmt::format("advise: {} at {:.0f} Mbit/s", one.name, bits_per_s / 1e6));
  const json advice = advice_on(folder / "job.toml", folder / "cluster.toml", options, stop);
  Advised advised = advised_by(advice, folder);
  std::map<std::string, std::vector<Outcome>> outcomes;
  for (int seed = 1; seed <= std::min(kSeeds, options.rounds); ++seed)
    for (const AdvisedTraining& training : advised.trainings) {
      say(options, fmt::format("advise: {} at {:.0f} Mbit/s: training by {}, seed {}", one.name,
                               bits_per_s / 1e6, training.name, seed));
      const HostsTraining asked = training_of(advised.jobs.at(training.name), seed, folder);
      outcomes[training.name].push_back(
          outcome_of(train_between_hosts(network, asked, stop), asked.run));
    }
  json computing = json::object();  // its share of a step
  for (const json& choice : advice.at("choices"))
    computing[choice.at("name").get<std::string>()] = choice.at("shares").at("compute");
  for (AdvisedTraining& training : advised.trainings) {
    conclude(training, outcomes[training.name], unshaped);
    if (!options.json) print_training(one.name, bits_per_s, training);
  }
  study.add(one.name, bits_per_s,
            {{"cluster", cluster},
             {"job", advice.at("job")},
             {"sentence", advice.at("sentence")},
             {"latency_s", latency_s},
             {"unshaped_bytes_per_s", unshaped},
             {"computing", computing}},
            advised.trainings);
}

}  // namespace

std::vector<std::string_view> advised_strategies() { return kAsked; }

json bench_advise(const BenchOptions& options, const std::atomic<bool>& stop) {
  if (const std::string reason = NamespacedNetwork::why_not(); !reason.empty())
    throw ConfigError("WHAT", "tutti bench advise: " + reason);
  const auto announce = [&](const std::string& text) { say(options, "advise: " + text); };
  ClusterConfig machine = measure_this_machine(0, announce, stop).cluster;
  const NamespacedNetwork network(kHosts);
  const double unshaped = unshaped_rate(network, kHosts, stop);
  // Guests speak TCP with each other, also those of one host.
  machine.host_bandwidth = unshaped_rate(network, 2, stop) / 2;
  machine.host_latency_s = 2 * link_latency_s(network, stop);
  say(options, fmt::format("advise: {} hosts, {:.2f} GB/s unshaped", kHosts, unshaped / 1e9));
  if (!options.json)
    fmt::print("\n{:<10} {:>6} {:<18} {:>9} {:>9} {:>8} {:>9} {:>9} {:>8} {:>8}\n", "task",
               "Mbit/s", "strategy", "ms/step", "advised", "off", "target s", "advised", "off",
               "said +-");
  AdviceStudy result;
  for (const AdvisedCase& one : cases())
    for (size_t i = 0; i < kBandwidths.size(); ++i)
      study(result, one, network, machine, kBandwidths[i], one.rates[i], unshaped, options, stop);
  return result.summary(options.json);
}

}  // namespace tutti

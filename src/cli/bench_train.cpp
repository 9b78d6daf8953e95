// `tutti bench train`: LeNet on Fashion-MNIST, two workers of 64 samples each, against PyTorch DDP
// and against the bound, two independent solo processes at once; and against what these would reach
// if each step took both as long as the slower of them, which is what synchronous training allows
// where the cores are not equally fast. `tutti bench deterministic`: what bitwise equality costs.
// `tutti bench oversubscribed`: the same global batch on eight workers, four times what two cores
// can run, against eight solos at once, which never wait for each other.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "cli/bench.h"
#include "testbed/run_files.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr int kSteps = 120;

const std::vector<std::string> kTask = {"name=bench",
                                        "task.data=fashion-mnist",
                                        "task.model=lenet",
                                        "task.epochs=1",
                                        "task.data.validation=0.005",
                                        fmt::format("task.max_steps={}", kSteps),
                                        "optimizer.kind=nesterov",
                                        "optimizer.lr=0.05",
                                        "optimizer.momentum=0.9"};

struct Run {
  double samples_per_s = 0;
  std::vector<double> step_s;  // the time of each step but the first
};

std::vector<double> step_times(const std::string& folder) {
  std::vector<double> result;
  const Series series = read_run(folder).series;
  for (size_t i = 1; i < series.time_s.size(); ++i)
    result.push_back(series.time_s[i] - series.time_s[i - 1]);
  return result;
}

std::vector<Run> run_at_once(const std::vector<std::vector<std::string>>& jobs,
                             const std::atomic<bool>& stop) {
  const TemporaryFolder folder;
  std::vector<Words> commands;
  for (size_t i = 0; i < jobs.size(); ++i) {
    std::vector<std::string> sets = kTask;
    sets.insert(sets.end(), jobs[i].begin(), jobs[i].end());
    commands.push_back(train_command(folder, fmt::format("run{}", i), sets));
  }
  const std::vector<std::string> outputs = outputs_of(commands, stop);
  std::vector<Run> result;
  for (size_t i = 0; i < jobs.size(); ++i)
    result.push_back({.samples_per_s = record_in(outputs[i])["samples_per_s"],
                      .step_s = step_times(fmt::format("{}/run{}", folder.path(), i))});
  return result;
}

double run_allreduce(const std::vector<std::string>& more, const std::atomic<bool>& stop) {
  std::vector<std::string> sets = {"strategy.kind=allreduce", "strategy.topology=direct",
                                   "cluster.workers=2", "task.global_batch=128"};
  sets.insert(sets.end(), more.begin(), more.end());
  return lenet_rate(sets, stop);
}

struct Solos {
  double free = 0;      // samples/s of both together
  double lockstep = 0;  // the same, had each step taken both as long as the slower one
};

std::vector<std::string> solo_job(int batch) {
  return {"strategy.kind=solo", "cluster.workers=1", fmt::format("task.global_batch={}", batch)};
}

Solos run_two_solos(const std::atomic<bool>& stop) {
  const std::vector<Run> runs = run_at_once({solo_job(64), solo_job(64)}, stop);
  double mean = 0, slower = 0;
  for (size_t i = 0; i < std::min(runs[0].step_s.size(), runs[1].step_s.size()); ++i) {
    mean += (runs[0].step_s[i] + runs[1].step_s[i]) / 2;
    slower += std::max(runs[0].step_s[i], runs[1].step_s[i]);
  }
  const double sum = runs[0].samples_per_s + runs[1].samples_per_s;
  return {sum, slower > 0 ? sum * mean / slower : 0};
}

// Long enough that the time in which not all of them run, at the start and the end, hardly counts.
double run_eight_solos(const std::atomic<bool>& stop) {
  std::vector<std::string> solo = solo_job(16);
  solo.push_back(fmt::format("task.max_steps={}", 8 * kSteps));
  double sum = 0;
  for (const Run& run : run_at_once(std::vector(8, solo), stop)) sum += run.samples_per_s;
  return sum;
}

double run_ddp(bool with_mimalloc, int processes, const std::atomic<bool>& stop) {
  Words command = {"/usr/bin/python3", program_folder() + "/peer_ddp_train.py",
                   "--processes",      std::to_string(processes),
                   "--batch",          std::to_string(128 / processes)};
  if (with_mimalloc) command.insert(command.begin(), {"env", "LD_PRELOAD=libmimalloc.so.2.0"});
  std::istringstream lines(output_of(command, stop));
  for (std::string line; std::getline(lines, line);) {
    const json entry = json::parse(line, nullptr, false);
    if (entry.is_object() && entry.contains("samples_per_s"))
      return median(entry["samples_per_s"].get<std::vector<double>>());
  }
  return 0;
}

// `ratio` is how fast the first is, relative to each; the medians of the rounds' ratios, because
// the machine changes its speed between rounds more than within one.
json finish(const BenchOptions& options, const std::vector<std::string>& names,
            const std::map<std::string, std::vector<double>>& rates) {
  json result = json::array();
  if (!options.json) fmt::print("\n{:<28} {:>12} {:>16}\n", "", "samples/s", "tutti relative");
  for (const std::string& name : names) {
    const auto found = rates.find(name);
    if (found == rates.end()) continue;
    std::vector<double> ratios;
    for (size_t i = 0; i < found->second.size(); ++i)
      if (found->second[i] > 0) ratios.push_back(rates.at(names[0])[i] / found->second[i]);
    const double rate = median(found->second), ratio = median(ratios);
    result.push_back({{"impl", name},
                      {"samples_per_s", rate},
                      {"rounds", found->second.size()},
                      {"ratio", ratio}});
    if (!options.json) fmt::print("{:<28} {:>12.0f} {:>15.2f}x\n", name, rate, ratio);
  }
  return result;
}

}  // namespace

double lenet_rate(const std::vector<std::string>& sets, const std::atomic<bool>& stop) {
  return run_at_once({sets}, stop).front().samples_per_s;
}

json bench_train(const BenchOptions& options, const std::atomic<bool>& stop) {
  const std::vector<std::string> names = {"tutti direct, 2 x 64",  "tutti direct, balanced",
                                          "two independent solos", "the same in lockstep",
                                          "PyTorch DDP",           "PyTorch DDP, mimalloc"};
  std::map<std::string, std::vector<double>> rates;
  for (int round = 0; round < options.rounds && !stop; ++round) {
    say(options, fmt::format("train: round {} of {}", round + 1, options.rounds));
    rates[names[0]].push_back(run_allreduce({}, stop));
    rates[names[1]].push_back(run_allreduce({"strategy.balance=true"}, stop));
    if (wanted(options, "solos")) {
      const Solos solos = run_two_solos(stop);
      rates[names[2]].push_back(solos.free);
      rates[names[3]].push_back(solos.lockstep);
    }
    if (!wanted(options, "ddp")) continue;
    rates[names[4]].push_back(run_ddp(false, 2, stop));
    rates[names[5]].push_back(run_ddp(true, 2, stop));
  }
  leave_if_stopped(stop);
  return finish(options, names, rates);
}

json bench_oversubscribed(const BenchOptions& options, const std::atomic<bool>& stop) {
  const std::vector<std::string> names = {"tutti direct, 8 x 16", "tutti ring, 8 x 16",
                                          "tutti direct, 2 x 64", "eight independent solos",
                                          "PyTorch DDP, 8 x 16",  "PyTorch DDP, mimalloc"};
  std::map<std::string, std::vector<double>> rates;
  for (int round = 0; round < options.rounds && !stop; ++round) {
    say(options, fmt::format("oversubscribed: round {} of {}", round + 1, options.rounds));
    rates[names[0]].push_back(run_allreduce({"cluster.workers=8"}, stop));
    rates[names[1]].push_back(run_allreduce({"cluster.workers=8", "strategy.topology=ring"}, stop));
    rates[names[2]].push_back(run_allreduce({}, stop));
    if (wanted(options, "solos")) rates[names[3]].push_back(run_eight_solos(stop));
    if (!wanted(options, "ddp")) continue;
    rates[names[4]].push_back(run_ddp(false, 8, stop));
    rates[names[5]].push_back(run_ddp(true, 8, stop));
  }
  leave_if_stopped(stop);
  return finish(options, names, rates);
}

json bench_deterministic(const BenchOptions& options, const std::atomic<bool>& stop) {
  const std::vector<std::string> names = {"deterministic, direct", "plain, direct",
                                          "deterministic, ring", "plain, ring"};
  std::map<std::string, std::vector<double>> rates;
  for (int round = 0; round < options.rounds && !stop; ++round) {
    say(options, fmt::format("deterministic: round {} of {}", round + 1, options.rounds));
    rates[names[0]].push_back(run_allreduce({"task.deterministic=true"}, stop));
    rates[names[1]].push_back(run_allreduce({}, stop));
    rates[names[2]].push_back(
        run_allreduce({"task.deterministic=true", "strategy.topology=ring"}, stop));
    rates[names[3]].push_back(run_allreduce({"strategy.topology=ring"}, stop));
  }
  leave_if_stopped(stop);
  return finish(options, names, rates);
}

}  // namespace tutti

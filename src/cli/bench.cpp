#include "cli/bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "core/error.h"
#include "core/schema.h"
#include "jobs/run_folder.h"
#include "jobs/run_status.h"
#include "jobs/tasks.h"

namespace tutti {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

bool wanted(const BenchOptions& options, std::string_view what) {
  return options.only.empty() ||
         std::find(options.only.begin(), options.only.end(), what) != options.only.end();
}

std::string program_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
}

Words train_command(const TemporaryFolder& folder, const std::string& run,
                    const std::vector<std::string>& sets) {
  write_file(folder / "bench.toml", "");
  Words command = {program_folder() + "/tutti",
                   "train",
                   folder / "bench.toml",
                   "--json",
                   "--quiet",
                   "--out",
                   folder / run};
  for (const std::string& set : sets) command.insert(command.end(), {"--set", set});
  return command;
}

nlohmann::json record_in(const std::string& output) {
  nlohmann::json record = nlohmann::json::parse(output, nullptr, false);
  if (!record.is_object() || !ended_well(record.value("status", "")))
    throw Error("a run that was to be measured did not end well: " + output.substr(0, 500));
  return record;
}

void say(const BenchOptions& options, const std::string& text) {
  if (!options.quiet) fmt::print(stderr, "{}\n", text);
}

void leave_if_stopped(const std::atomic<bool>& stop) {
  if (stop.load()) throw InterruptedError();
}

void require_all_done(const std::vector<NodeOutcome>& outcomes, const std::string& what,
                      const std::atomic<bool>& stop) {
  leave_if_stopped(stop);
  for (const NodeOutcome& outcome : outcomes)
    if (outcome.kind != NodeOutcome::Kind::kDone)
      throw Error(fmt::format("bench {}: {}", what, outcome.error));
}

namespace {

struct Benchmark {
  std::string_view name;
  nlohmann::json (*run)(const BenchOptions&, const std::atomic<bool>&);
  std::vector<std::string_view> parts;  // that --only chooses from
  int least_processes, most_processes;  // that --processes may ask for; 0: it is not asked
};

std::vector<std::string_view> names_of_tasks() {
  std::vector<std::string_view> names;
  for (const ReferenceTask& task : reference_tasks()) names.push_back(task.name);
  return names;
}

const std::vector<Benchmark>& benchmarks() {
  static const std::vector<Benchmark> all = {
      {"allreduce",
       bench_allreduce,
       {"direct", "ring", "butterfly", "openmpi", "gloo", "shared loop"},
       1,
       256},
      {"train", bench_train, {"direct", "solos", "ddp"}, 0, 0},
      {"oversubscribed", bench_oversubscribed, {"tutti", "solos", "ddp"}, 0, 0},
      {"deterministic", bench_deterministic, {}, 0, 0},
      {"model_parallel", bench_model_parallel, {}, 0, 0},
      {"ps", bench_ps, {"dense", "lenet", "sparse"}, 0, 0},
      {"overhead", bench_overhead, {}, 0, 0},
      {"cost_noise", bench_cost_noise, {}, 0, 0},
      {"virtual", bench_virtual, {"cases", "growth"}, 0, 0},
      {"network", bench_network, {}, 2, 64},
      {"here", bench_here, names_of_tasks(), 0, 0},
      {"advise", bench_advise, advised_strategies(), 0, 0},
      {"federated", bench_federated, {}, 0, 0},
      {"startup", bench_startup, {}, 0, 0}};
  return all;
}

// Throws ConfigError: `word` is none of `known`.
[[noreturn]] void refuse_word(const std::string& key, const std::string& what,
                              const std::string& word, const std::vector<std::string_view>& known) {
  const std::string near = nearest(word, known);
  throw ConfigError(key, fmt::format("there is no {} '{}'{}; there are {}", what, word,
                                     near.empty() ? "" : ", did you mean '" + near + "'?",
                                     fmt::join(known, ", ")));
}

const Benchmark& benchmark_of(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Benchmark& benchmark : benchmarks()) {
    if (benchmark.name == name) return benchmark;
    names.push_back(benchmark.name);
  }
  refuse_word("WHAT", "benchmark", name, names);
}

// All that would end in vain after minutes of measuring.
void validate(const BenchOptions& options, const Benchmark& benchmark) {
  for (const std::string& part : options.only) {
    if (benchmark.parts.empty())
      throw ConfigError("--only", fmt::format("--only {}: bench {} has no parts to choose from",
                                              part, benchmark.name));
    if (std::find(benchmark.parts.begin(), benchmark.parts.end(), part) == benchmark.parts.end())
      refuse_word("--only", fmt::format("part of bench {} called", benchmark.name), part,
                  benchmark.parts);
  }
  for (const int count : options.processes)
    if (benchmark.most_processes > 0 &&
        (count < benchmark.least_processes || count > benchmark.most_processes))
      throw ConfigError("--processes", fmt::format("--processes {}: bench {} runs on {} to {}",
                                                   count, benchmark.name, benchmark.least_processes,
                                                   benchmark.most_processes));
  if (options.out.empty()) return;
  const std::filesystem::path out(options.out);
  const std::string folder = out.has_parent_path() ? out.parent_path().string() : ".";
  std::error_code failed;
  if (std::filesystem::is_directory(out, failed))
    throw ConfigError("--out", fmt::format("{}: cannot be written: it is a folder", options.out));
  const bool special = std::filesystem::is_other(out, failed);
  if (access(special ? options.out.c_str() : folder.c_str(), W_OK) != 0)
    throw ConfigError("--out",
                      fmt::format("{}: cannot be written: {}", options.out, std::strerror(errno)));
}

}  // namespace

int run_bench(const BenchOptions& options, const std::atomic<bool>& stop) {
  const Benchmark& benchmark = benchmark_of(options.what);
  validate(options, benchmark);
  const nlohmann::json result = benchmark.run(options, stop);
  leave_if_stopped(stop);
  if (options.json) std::cout << result.dump() << "\n";
  if (!options.out.empty()) write_file(options.out, result.dump(2) + "\n");
  return 0;
}

}  // namespace tutti

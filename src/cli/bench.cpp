#include "cli/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "core/error.h"
#include "core/schema.h"
#include "jobs/run_folder.h"

namespace tutti {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string output_of(const std::string& command) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return output;
  std::array<char, 4096> block{};
  while (const size_t count = fread(block.data(), 1, block.size(), pipe))
    output.append(block.data(), count);
  return pclose(pipe) == 0 ? output : "";
}

bool wanted(const BenchOptions& options, std::string_view what) {
  return options.only.empty() ||
         std::find(options.only.begin(), options.only.end(), what) != options.only.end();
}

std::string program_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
}

TemporaryFolder::TemporaryFolder()
    : path_((std::filesystem::temp_directory_path() / "tutti-bench-XXXXXX").string()) {
  if (!mkdtemp(path_.data())) throw Error("cannot make a temporary folder");
  write_file(path_ + "/bench.toml", "");
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string train_command(const TemporaryFolder& folder, const std::string& run,
                          const std::vector<std::string>& sets) {
  std::string command = fmt::format("{}/tutti train {}/bench.toml --json --quiet --out {}/{}",
                                    program_folder(), folder.path(), folder.path(), run);
  for (const std::string& set : sets) command += fmt::format(" --set '{}'", set);
  return command;
}

nlohmann::json record_in(const std::string& output) {
  nlohmann::json record = nlohmann::json::parse(output, nullptr, false);
  if (!record.is_object() || record.value("status", "") != "done")
    throw Error("a run that was to be measured did not end well: " + output.substr(0, 500));
  return record;
}

void say(const BenchOptions& options, const std::string& text) {
  if (!options.quiet) fmt::print(stderr, "{}\n", text);
}

int run_bench(const BenchOptions& options, const std::atomic<bool>& stop) {
  nlohmann::json result;
  if (options.what == "allreduce")
    result = bench_allreduce(options, stop);
  else if (options.what == "train")
    result = bench_train(options, stop);
  else if (options.what == "deterministic")
    result = bench_deterministic(options, stop);
  else if (options.what == "model_parallel")
    result = bench_model_parallel(options, stop);
  else if (options.what == "ps")
    result = bench_ps(options, stop);
  else if (options.what == "virtual")
    result = bench_virtual(options, stop);
  else if (options.what == "network")
    result = bench_network(options, stop);
  else if (options.what == "federated")
    result = bench_federated(options, stop);
  else if (options.what == "startup")
    result = bench_startup(options);
  else
    throw ConfigError("WHAT", fmt::format("there is no benchmark '{}'; there are allreduce, train, "
                                          "deterministic, model_parallel, ps, virtual, network, "
                                          "federated and startup",
                                          options.what));
  if (options.json) std::cout << result.dump() << "\n";
  if (!options.out.empty()) write_file(options.out, result.dump(2) + "\n");
  return stop ? 130 : 0;
}

}  // namespace tutti

// What the benchmarks share: running peers, medians, tables.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace tutti {

double median(std::vector<double> values);

// Standard output of a command, or "" when it could not be run; its errors go to standard error.
std::string output_of(const std::string& command);

// Where the program and the peers lie.
std::string program_folder();

// A line on standard error unless quiet: benchmarks take minutes.
void say(const BenchOptions& options, const std::string& text);

// Each returns the list that --json prints, and prints its table unless options.json.
nlohmann::json bench_allreduce(const BenchOptions& options, const std::atomic<bool>& stop);
nlohmann::json bench_train(const BenchOptions& options, const std::atomic<bool>& stop);
nlohmann::json bench_deterministic(const BenchOptions& options, const std::atomic<bool>& stop);
nlohmann::json bench_virtual(const BenchOptions& options, const std::atomic<bool>& stop);
nlohmann::json bench_startup(const BenchOptions& options);

}  // namespace tutti

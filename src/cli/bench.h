// What the benchmarks share: running peers, medians, tables.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "core/temporary_folder.h"
#include "fabric/fabric.h"

namespace tutti {

double median(std::vector<double> values);

// A program and its arguments. No shell reads them: folders may be called anything.
using Words = std::vector<std::string>;

// Standard output of commands that run at once, each "" when it failed; their errors go to standard
// error. Ends them and throws InterruptedError when `stop` says so.
std::vector<std::string> outputs_of(const std::vector<Words>& commands,
                                    const std::atomic<bool>& stop);
std::string output_of(const Words& command, const std::atomic<bool>& stop);
struct CommandOutput {
  std::string text;
  double peak_bytes = 0;  // of the largest of its processes
  double cpu_s = 0;       // of all of them together
};
CommandOutput measured_output_of(const Words& command, const std::atomic<bool>& stop);

// Where the program and the peers lie.
std::string program_folder();

// The command that trains the default job, which it writes into `folder`, with these settings. The
// run goes into folder `run` below it.
Words train_command(const TemporaryFolder& folder, const std::string& run,
                    const std::vector<std::string>& sets);

// The record that such a command printed. Throws when the run did not end well.
nlohmann::json record_in(const std::string& output);

// Samples/s of the task that `bench train` measures: LeNet on Fashion-MNIST.
double lenet_rate(const std::vector<std::string>& sets, const std::atomic<bool>& stop);

// Whether --only names it, or names nothing.
bool wanted(const BenchOptions& options, std::string_view what);

// A line on standard error unless quiet: benchmarks take minutes.
void say(const BenchOptions& options, const std::string& text);

// Half a benchmark is none. Throws InterruptedError.
void leave_if_stopped(const std::atomic<bool>& stop);
// What nodes must have come to before their figures count; `what` names the benchmark. Throws
// InterruptedError, or Error with what the first that failed says.
void require_all_done(const std::vector<NodeOutcome>& outcomes, const std::string& what,
                      const std::atomic<bool>& stop);

// Each returns the list that --json prints, and prints its table unless options.json.
nlohmann::json bench_allreduce(const BenchOptions& options, const std::atomic<bool>& stop);
nlohmann::json bench_train(const BenchOptions& options, const std::atomic<bool>& stop);
nlohmann::json bench_oversubscribed(const BenchOptions& options, const std::atomic<bool>& stop);
nlohmann::json bench_deterministic(const BenchOptions& options, const std::atomic<bool>& stop);
nlohmann::json bench_model_parallel(const BenchOptions& options, const std::atomic<bool>& stop);
nlohmann::json bench_ps(const BenchOptions& options, const std::atomic<bool>& stop);
nlohmann::json bench_overhead(const BenchOptions& options, const std::atomic<bool>& stop);
std::vector<std::string_view> advised_strategies();  // parts of `bench advise`
nlohmann::json bench_advise(const BenchOptions& options, const std::atomic<bool>& stop);
nlohmann::json bench_cost_noise(const BenchOptions& options, const std::atomic<bool>& stop);
nlohmann::json bench_virtual(const BenchOptions& options, const std::atomic<bool>& stop);
nlohmann::json bench_network(const BenchOptions& options, const std::atomic<bool>& stop);
nlohmann::json bench_here(const BenchOptions& options, const std::atomic<bool>& stop);
nlohmann::json bench_federated(const BenchOptions& options, const std::atomic<bool>& stop);
nlohmann::json bench_ps_sparse(const BenchOptions& options, const std::atomic<bool>& stop);
nlohmann::json bench_startup(const BenchOptions& options, const std::atomic<bool>& stop);

}  // namespace tutti

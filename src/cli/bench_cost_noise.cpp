// `tutti bench cost_noise` asks whether the error bars of a measured model hold: each model is
// timed as `tutti advise` times it, again and again, every other time beside a load on all cores.
// The interval of 90 % around each time of a gradient should cover what it takes on a calm machine:
// the median of the repetitions without the load. Times are in units of the reference kernel's,
// because that ratio is what advice carries over to other machines.
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <memory>
#include <thread>

#include "cli/bench.h"
#include "core/error.h"
#include "jobs/job.h"
#include "testbed/model_cost.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr int kRepetitionsOfARound = 4;  // 20 by default
constexpr int64_t kBatch = 64;

// What other programs do to this one: processes that compute and move memory, one for each core,
// until the object goes.
class Load {
 public:
  Load() {
    const pid_t parent = getpid();
    const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
    for (unsigned i = 0; i < cores; ++i) {
      const pid_t child = fork();
      if (child == 0) work(parent);
      if (child < 0) throw Error(fmt::format("cannot start a load: {}", std::strerror(errno)));
      children_.push_back(child);
    }
  }
  ~Load() {
    for (const pid_t child : children_) kill(child, SIGKILL);
    for (const pid_t child : children_)
      while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
      }
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

 private:
  [[noreturn]] static void work(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);         // it died before the line above
    std::vector<float> values(4 << 20, 1.0F);  // 16 MB: more than a core's own caches
    const volatile float factor = 0.999F;
    for (;;)
      for (float& value : values) value = value * factor + 0.001F;
  }

  std::vector<pid_t> children_;
};

struct NoiseCase {
  std::string name;
  std::vector<std::string> settings;
};

const std::vector<NoiseCase>& noise_cases() {
  static const std::vector<NoiseCase> cases = {
      {"logistic 16",
       {"task.data={kind=\"synthetic-classes\", features=16}", "task.model=logistic"}},
      {"mlp 256-256",
       {"task.data={kind=\"synthetic-classes\", features=784}",
        "task.model={kind=\"mlp\", hidden=[256, 256]}"}},
      {"lenet 6-16",
       {"task.data={kind=\"fashion-mnist\", limit=2000}",
        "task.model={kind=\"lenet\", channels=[6, 16]}"}},
  };
  return cases;
}

struct Repetition {
  double relative = 0;  // time of a gradient, in times of the reference kernel for a MFLOP
  double half_width = 0;
  bool loaded = false;
};

Repetition repetition_of(const Job& job, const Resolved& task, bool loaded) {
  const ModelCost cost = measure_model_cost(job, task);
  const double runs = 2 * static_cast<double>(task.architecture.layers.size());
  const double gradient_s = cost.step_s + runs * cost.layer_s + kBatch * cost.sample_s;
  return {.relative = gradient_s * cost.reference_flops / 1e6,
          .half_width = cost.half_width(),
          .loaded = loaded};
}

json row_of(const std::string& name, const std::vector<Repetition>& all) {
  std::vector<double> calm, loaded, widths;
  for (const Repetition& one : all) {
    (one.loaded ? loaded : calm).push_back(one.relative);
    widths.push_back(one.half_width);
  }
  const double truth = median(calm);
  int64_t covered = 0;
  double worst = 0;
  for (const Repetition& one : all) {
    const double off = std::abs(truth / one.relative - 1);
    covered += off <= one.half_width;
    worst = std::max(worst, off);
  }
  return {{"case", name},           {"repetitions", all.size()}, {"covered", covered},
          {"calm", truth},          {"loaded", median(loaded)},  {"worst_off", worst},
          {"error", median(widths)}};
}

void print_table(const json& rows) {
  fmt::print("\n{:<14} {:>11} {:>9} {:>13} {:>17} {:>10} {:>12}\n", "model", "repetitions",
             "covered", "calm, MFLOP", "beside load", "worst off", "said, half");
  for (const json& row : rows)
    fmt::print("{:<14} {:>11} {:>9} {:>13.3g} {:>17.3g} {:>8.0f} % {:>10.0f} %\n",
               row["case"].get<std::string>(), row["repetitions"].get<size_t>(),
               row["covered"].get<int64_t>(), row["calm"].get<double>(),
               row["loaded"].get<double>(), 100 * row["worst_off"].get<double>(),
               100 * row["error"].get<double>());
  fmt::print(
      "\ntime of a gradient of {} samples, as what the reference kernel computes meanwhile;\n"
      "covered: by the interval of 90 % of a repetition, half of them beside a load on all cores\n",
      kBatch);
}

}  // namespace

json bench_cost_noise(const BenchOptions& options, const std::atomic<bool>& stop) {
  json rows = json::array();
  for (const NoiseCase& one : noise_cases()) {
    std::vector<std::string> settings = one.settings;
    settings.push_back(fmt::format("task.global_batch={}", kBatch));
    Job job = load_job("", settings);
    const Resolved task = resolve(job);
    std::vector<Repetition> repetitions;
    for (int i = 0; i < kRepetitionsOfARound * options.rounds; ++i) {
      leave_if_stopped(stop);
      const bool loaded = i % 2 == 1;
      say(options,
          fmt::format("cost_noise: {}, repetition {} of {}{}", one.name, i + 1,
                      kRepetitionsOfARound * options.rounds, loaded ? ", beside a load" : ""));
      const std::unique_ptr<Load> load = loaded ? std::make_unique<Load>() : nullptr;
      repetitions.push_back(repetition_of(job, task, loaded));
    }
    rows.push_back(row_of(one.name, repetitions));
  }
  if (!options.json) print_table(rows);
  return rows;
}

}  // namespace tutti

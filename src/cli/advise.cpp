// `tutti advise`: which architecture for this task on that cluster.
#include "testbed/advise.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "core/described_json.h"
#include "core/error.h"
#include "core/printable.h"
#include "core/units.h"
#include "data/paths.h"
#include "fabric/outcome.h"
#include "jobs/prediction_history.h"
#include "jobs/progress.h"
#include "jobs/run_folder.h"
#include "jobs/run_record.h"
#include "testbed/interval.h"
#include "testbed/this_machine.h"

namespace tutti {
namespace {

constexpr double kUsualBudget_s = 300;
constexpr double kRedraw_s = 1;
constexpr double kBetweenAnswers_s = 5;

// Shows progress: one live line on a terminal, a plain line for each work otherwise.
class AdviceProgress {
 public:
  explicit AdviceProgress(bool quiet) : quiet_(quiet), live_(isatty(STDERR_FILENO) != 0) {}

  void doing(const std::string& what) {
    doing_ = what;
    if (quiet_) return;
    if (live_)
      draw();
    else
      tell(printable(what) + "\n");
  }
  void answered(const std::string& sentence) {
    // Answers that come one upon the other are not worth reading each.
    const bool soon = answered_ && passed_s() - answered_s_ < kBetweenAnswers_s;
    if (quiet_ || soon) return;
    answered_ = true;
    answered_s_ = passed_s();
    tell((live_ ? "\r\033[K" : "") +
         printable(fmt::format("after {:.0f} s: {}\n", answered_s_, sentence)));
    if (live_) draw();
  }
  void noticed(const std::string& remarks) {
    if (!quiet_) tell((live_ ? "\r\033[K" : "") + remarks);
  }
  void waiting() {
    if (live_ && !quiet_ && passed_s() - drawn_s_ > kRedraw_s) draw();
  }
  void end() {
    if (live_ && !quiet_) tell("\r\033[K");
  }

 private:
  double passed_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  }
  void draw() {
    drawn_s_ = passed_s();
    const std::string line = printable(fmt::format("{:.0f} s  {}", drawn_s_, doing_));
    tell("\r\033[K" + line.substr(0, columns_of(STDERR_FILENO) - 1));
  }

  const bool quiet_, live_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  double drawn_s_ = 0, answered_s_ = 0;
  bool answered_ = false;
  std::string doing_;
};

double budget_of(const std::string& text) {
  if (text.empty()) return kUsualBudget_s;
  try {
    if (const double budget_s = parse_quantity(text, Unit::kSeconds); budget_s > 0) return budget_s;
  } catch (const ConfigError&) {
  }
  throw ConfigError("--budget", fmt::format("--budget {}: is no time above 0; write it like 90s or "
                                            "10min",
                                            text));
}

// The name by which outcomes on a cluster are found again: a file's without its folder.
std::string name_of_cluster(const std::string& option) {
  return option.empty() ? "the job's own" : std::filesystem::path(option).stem().string();
}

// Returns by how much real runs on that cluster were off, if there were enough of them. The newest
// count. Runs that are over in a moment are mostly start-up, which says nothing of longer ones.
double history_of(const std::string& cluster, const HistoryNote& note,
                  const std::atomic<bool>& stop) {
  constexpr size_t kNewest = 100;
  constexpr double kShortest_s = 1;
  std::vector<double> log_ratios;
  for (const PredictionOutcome& outcome :
       read_prediction_history(cache_folder() + kHistoryFile, note, stop))
    if (outcome.obtained == Obtained::kMeasured && outcome.cluster_name == cluster &&
        outcome.took_s >= kShortest_s)
      log_ratios.push_back(std::log(outcome.took_s / outcome.predicted_s));
  const size_t old = log_ratios.size() - std::min(log_ratios.size(), kNewest);
  return half_width_of_history(std::span(log_ratios).subspan(old)).value_or(0);
}

// Leaves what was predicted beside the job that was written, for `tutti train` to hold against what
// it takes. Where there is nothing to hold it against, an older one goes.
void write_prediction(const std::string& file, const std::string& cluster, const Advice& advice) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(file, failed)) return;  // standard output, for example
  const std::string path = prediction_file_of(file);
  const AdvisedChoice& best = advice.choices.front();
  if (!best.is_judged() || !best.time_s) {
    std::filesystem::remove(path, failed);
    return;
  }
  Prediction prediction = prediction_for(load_job(file, {}), cluster);
  prediction.task = advice.task_fingerprint;
  prediction.strategy = best.name;
  prediction.time_s = *best.time_s;
  prediction.error = best.error.value_or(0);
  prediction.error_of_simulation = advice.error_of_simulation;
  write_file(path, json_of(prediction).dump(2) + "\n");
}

// Says how to use the job that was written.
std::string use_of(const std::string& file, const Advice& advice, bool here) {
  const AdvisedChoice& best = advice.choices.front();
  const std::string use = fmt::format("{} is the job to run: tutti train {} simulates {} {}", file,
                                      file, best.name, best.where);
  return here ? use + ", and with --set cluster.fabric=process it trains for real" : use;
}

}  // namespace

int run_advise(const AdviseCliOptions& options, const std::atomic<bool>& stop) {
  if (!options.write.empty()) require_writable("--write", options.write);
  AdviceProgress progress(options.quiet);
  AdviseOptions asked{
      .cluster = cluster_of(options.cluster, stop),
      .strategies = options.strategies,
      .seeds = options.seeds,
      .quick = options.quick,
      .declared = options.declared,
      .budget_s = options.complete && options.budget.empty() ? 0 : budget_of(options.budget),
      .complete = options.complete,
      .cache = options.no_cache ? "" : cache_folder() + "/lessons"};
  asked.answered = [&](const std::string& sentence) { progress.answered(sentence); };
  asked.waiting = [&] { progress.waiting(); };
  asked.noticed = [&](const std::string& remarks) { progress.noticed(remarks); };
  const std::string cluster = name_of_cluster(options.cluster);
  if (!options.no_cache)
    asked.history = history_of(
        cluster, [&](const std::string& text) { progress.doing(text); }, stop);
  const Advice advice = advise(
      job_of({{options.json, options.quiet}, options.job, options.sets, "", ""}, stop), asked,
      [&](const std::string& what) { progress.doing(what); }, stop);
  progress.end();
  AdviceTextOptions text{
      .written = "", .columns = columns_of(STDOUT_FILENO), .verbose = options.verbose};
  std::exception_ptr not_written;
  if (!options.write.empty()) try {
      write_file(options.write, advice.job_to_run);
      write_prediction(options.write, cluster, advice);
      text.written = use_of(options.write, advice, is_this_machine(options.cluster));
    } catch (const DataError&) {
      not_written = std::current_exception();  // the advice is as good without
    }
  std::cout << (options.json ? json_text(json_of(advice)) + "\n"
                             : printable(advice_text(advice, text)));
  if (not_written) std::rethrow_exception(not_written);
  return advice.status == AdviceStatus::kInterrupted ? kExitInterrupted : 0;
}

}  // namespace tutti

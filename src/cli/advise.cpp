// `tutti advise`: which architecture for this task on that cluster.
#include "testbed/advise.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "core/described_json.h"
#include "core/error.h"
#include "core/printable.h"
#include "core/units.h"
#include "data/paths.h"
#include "fabric/outcome.h"
#include "jobs/progress.h"
#include "jobs/run_folder.h"
#include "jobs/run_record.h"

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

// As the XDG specification has it, which counts absolute paths alone.
std::string lessons_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const std::string folder =
      cache && *cache == '/' ? std::string(cache) + "/tutti" : cache_directory();
  return folder + "/lessons";
}

// Says how to use the job that was written.
std::string use_of(const std::string& file, const Advice& advice) {
  const AdvisedChoice& best = advice.choices.front();
  return fmt::format("{} is the job to run: tutti train {} simulates {} {}", file, file, best.name,
                     best.where);
}

}  // namespace

int run_advise(const AdviseCliOptions& options, const std::atomic<bool>& stop) {
  AdviceProgress progress(options.quiet);
  AdviseOptions asked{
      .cluster = options.cluster,
      .strategies = options.strategies,
      .seeds = options.seeds,
      .quick = options.quick,
      .declared = options.declared,
      .budget_s = options.complete && options.budget.empty() ? 0 : budget_of(options.budget),
      .complete = options.complete,
      .cache = options.no_cache ? "" : lessons_folder()};
  asked.answered = [&](const std::string& sentence) { progress.answered(sentence); };
  asked.waiting = [&] { progress.waiting(); };
  asked.noticed = [&](const std::string& remarks) { progress.noticed(remarks); };
  const Advice advice = advise(
      job_of({{}, options.job, options.sets, "", ""}), asked,
      [&](const std::string& what) { progress.doing(what); }, stop);
  progress.end();
  AdviceTextOptions text{
      .written = "", .columns = columns_of(STDOUT_FILENO), .verbose = options.verbose};
  if (!options.write.empty()) {
    write_file(options.write, advice.job_to_run);
    text.written = use_of(options.write, advice);
  }
  std::cout << (options.json ? json_text(json_of(advice)) + "\n"
                             : printable(advice_text(advice, text)));
  return advice.status == AdviceStatus::kInterrupted ? kExitInterrupted : 0;
}

}  // namespace tutti

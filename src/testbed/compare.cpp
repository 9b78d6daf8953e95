#include "testbed/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "core/described_json.h"
#include "core/error.h"
#include "core/units.h"
#include "fabric/capabilities.h"
#include "fabric/outcome.h"
#include "jobs/run_folder.h"
#include "jobs/run_record.h"
#include "jobs/run_status.h"
#include "jobs/task_identity.h"
#include "testbed/account.h"
#include "testbed/compare_progress.h"
#include "testbed/comparison_folder.h"
#include "testbed/comparison_plan.h"
#include "testbed/run_pool.h"
#include "testbed/summary.h"

namespace tutti {
namespace {

constexpr int kListen_ms = 50;
// A terminal's Ctrl-C reaches the runs too: they get this long to stop by themselves.
constexpr double kGrace_s = 1;
constexpr double kPatience_s = 10;

class ComparisonRun {
 public:
  ComparisonRun(std::vector<PlannedRun> plan, const ComparisonFolder& folder,
                const CompareOptions& options, const std::string& metric)
      : plan_(std::move(plan)),
        results_(plan_.size()),
        started_(plan_.size(), false),
        folder_(folder),
        options_(options),
        progress_(options.progress, plan_.size(), metric, options.columns),
        pool_(options.program) {}

  // Runs all that is not there yet. One result per planned run, in its order. `account` is called
  // often, and told when a run has ended.
  std::vector<RunFiles> run(const std::atomic<bool>& stop, Account& account) {
    while (start_what_can() || pool_.running() > 0) {
      const std::vector<EndedRun> all_ended = pool_.listen(kListen_ms);
      for (const EndedRun& ended : all_ended) finish(ended);
      account.keep_up(!all_ended.empty());
      progress_.update(pool_.progress());
      if (stop) {
        end_runs();
        throw InterruptedError();
      }
      if (options_.most_s > 0 && seconds_since(started_at_) > options_.most_s) return give_up();
    }
    return taken();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  std::vector<RunFiles> taken() {
    std::vector<RunFiles> files;
    for (std::optional<RunFiles>& result : results_) files.push_back(std::move(*result));
    return files;
  }

  // What has not ended by now is as if somebody had stopped it.
  std::vector<RunFiles> give_up() {
    end_runs();
    for (size_t i = 0; i < plan_.size(); ++i)
      if (!results_[i])
        results_[i] = missing_run(folder_.run(plan_[i].name), plan_[i].job, RunStatus::kInterrupted,
                                  "the time was up");
    return taken();
  }

  // Starts, or finds finished, every run whose turn it is. True while some are still to come.
  bool start_what_can() {
    bool waiting = false;
    size_t found = 0;
    for (size_t i = 0; i < plan_.size(); ++i) {
      if (started_[i]) continue;
      const PlannedRun& run = plan_[i];
      const bool ready = !run.leader || results_[*run.leader];
      // Runs that measure have the machine to themselves.
      const bool alone = runs_alone(run.job);
      const size_t most =
          options_.jobs > 0 ? options_.jobs : std::max(1u, std::thread::hardware_concurrency());
      const bool room = alone ? pool_.running() == 0 : !measuring_ && pool_.running() < most;
      if (!ready || !room) {
        waiting = true;
        continue;
      }
      started_[i] = true;
      if (take_or_start(i)) ++found;
    }
    progress_.kept(found);
    return waiting;
  }

  // True when the run was there already.
  bool take_or_start(size_t i) {
    const PlannedRun& run = plan_[i];
    Job job = job_of(run);
    const std::string wanted = resolved_toml(job);
    std::string complaint;
    if (auto files = folder_.finished(run.name, wanted, complaint)) {
      keep(i, std::move(*files));
      return true;
    }
    if (!complaint.empty() && options_.strict)
      throw DataError(complaint + "; without --strict it would be run again");
    if (!complaint.empty()) progress_.say(complaint + "; it is run again");
    folder_.remove(run.name);
    write_file(folder_.job(run.name), wanted);
    pool_.start(
        i, run.name,
        {"train", folder_.job(run.name), "--out", folder_.run(run.name), "--progress", "json"});
    measuring_ = runs_alone(run.job);
    return false;
  }

  // With a learning curve to share only times are simulated; otherwise it computes its own.
  Job job_of(const PlannedRun& run) const {
    if (!run.leader) return with_settings(run.job, {});
    const RunFiles& leader = *results_[*run.leader];
    const std::string& status = leader.record.status;
    if (!learned_to_the_end(status)) return with_settings(run.job, {});
    return follower_job(run.job, static_cast<int64_t>(leader.record.steps.value_or(0)));
  }

  void finish(const EndedRun& ended) {
    const PlannedRun& run = plan_[ended.id];
    measuring_ = false;
    const std::string path = folder_.run(run.name);
    std::optional<RunFiles> files;
    std::string error = ended.error;
    // A run that was ended by force may have left a record of something else.
    if (ended.exit_code >= 0 && std::filesystem::exists(path + "/run.json")) try {
        files = read_run(path);
      } catch (const DataError& damaged) {
        if (ended.exit_code == kExitDone) error = damaged.what();  // else it has said why
      }
    if (!files)
      files = missing_run(
          path, run.job,
          ended.exit_code == kExitInterrupted ? RunStatus::kInterrupted : RunStatus::kFailed,
          error);
    progress_.ended(run.name, outcome(*files));
    keep(ended.id, std::move(*files));
  }

  void keep(size_t i, RunFiles files) {
    const PlannedRun& run = plan_[i];
    if (run.leader && files.cost_only() && files.curve_of.empty() && is_done(files)) {
      const RunFiles& leader = *results_[*run.leader];
      note_shared_curve(files.folder, plan_[*run.leader].name);
      stitch(files, leader);
    }
    results_[i] = std::move(files);
  }

  static std::string outcome(const RunFiles& run) {
    const RecordedRun& record = run.record;
    if (!is_done(run)) return fmt::format("{}: {}", record.status, record.error);
    std::string text = fmt::format("{:.4g} s {}", record.time.total_s.value_or(0), record.obtained);
    if (record.quality.last)
      text += fmt::format(", final {} {} on validation", record.quality.metric,
                          human_quality(*record.quality.last));
    return text;
  }

  // Stops all runs. What they were doing is done again next time.
  void end_runs() {
    const auto start = Clock::now();
    bool told = false;
    while (pool_.running() > 0 && seconds_since(start) < kPatience_s) {
      pool_.listen(kListen_ms);
      if (!told && seconds_since(start) > kGrace_s) {
        pool_.signal_all(SIGTERM);
        told = true;
      }
    }
  }

  std::vector<PlannedRun> plan_;
  std::vector<std::optional<RunFiles>> results_;
  std::vector<bool> started_;
  const ComparisonFolder& folder_;
  CompareOptions options_;
  CompareProgress progress_;
  RunPool pool_;
  const Clock::time_point started_at_ = Clock::now();
  bool measuring_ = false;
};

std::vector<Refusal> not_possible(const std::vector<ComparedJob>& compared) {
  std::vector<Refusal> list;
  for (const ComparedJob& candidate : compared)
    if (!candidate.refusal.empty())
      list.push_back({candidate.job.name, candidate.job.strategy_kind, candidate.refusal});
  return list;
}

// Returns the fingerprint of the data as it is now, from the first job that can run, and tells what
// there is to say of the data. A file may change while its settings do not.
std::string data_of(const std::vector<ComparedJob>& compared, ProgressStyle progress) {
  for (const ComparedJob& candidate : compared)
    if (candidate.refusal.empty()) {
      const Resolved resolved = resolve(candidate.job);
      if (progress != ProgressStyle::kNone) tell(remarks_on(resolved.data));
      const TaskIdentity task = task_identity(candidate.job, resolved);
      return task.data + task.split;
    }
  return "";
}

// Gives each strategy its own best value of the setting that is tuned. The trials have a folder
// like that of a comparison in the one of the comparison, so they go on like its runs.
std::vector<std::optional<ComparedTuning>> tuned(std::vector<ComparedJob>& compared,
                                                 const ComparisonFolder& home,
                                                 const ComparisonSettings& settings,
                                                 const CompareOptions& options,
                                                 const std::atomic<bool>& stop, Account& account) {
  const ComparisonFolder folder(home.path() + "/tuning", "", settings);
  return tune(compared, *options.tuning, options.share_curves,
              [&](const std::vector<PlannedRun>& plan) {
                if (options.progress != ProgressStyle::kNone)
                  tell(
                      fmt::format("tuning {} by {} trial runs in {}; the same command goes on "
                                  "with it\n",
                                  options.tuning->key, plan.size(), folder.path()));
                return ComparisonRun(plan, folder, options, "quality").run(stop, account);
              });
}

}  // namespace

Comparison compare(Job& job, const CompareOptions& options, const std::atomic<bool>& stop,
                   std::string& folder) {
  std::vector<ComparedJob> compared = compared_jobs(job, options.strategies);
  const std::vector<uint64_t> seeds =
      options.seeds.empty() ? std::vector<uint64_t>{job.task.seed} : options.seeds;
  if (options.tuning) validate(*options.tuning, compared, seeds);
  // Seeds are not part of what is compared: more of them may be added later.
  Job fixed = job;
  fixed.task.seed = 1;
  for (Job& entry : fixed.compare) entry.task.seed = 1;
  const ComparisonSettings settings{resolved_toml(fixed), options.share_curves,
                                    data_of(compared, options.progress),
                                    options.tuning ? options.tuning->text() : ""};
  const ComparisonFolder home(options.out, job.name, settings);
  folder = home.path();
  Account account(folder, job.footprint);  // of the search and of the comparison
  std::vector<std::optional<ComparedTuning>> found(compared.size());
  std::vector<PlannedRun> plan;
  std::vector<RunFiles> files;
  try {
    if (options.tuning) found = tuned(compared, home, settings, options, stop, account);
    plan = plan_runs(compared, seeds, options.share_curves);
    if (options.progress != ProgressStyle::kNone && options.announces)
      tell(fmt::format("comparing {} runs in {}; the same command with --out {} goes on with it\n",
                       plan.size(), folder, folder));
    files = ComparisonRun(plan, home, options, "quality").run(stop, account);
  } catch (const InterruptedError&) {
    account.close();
    throw;
  }

  std::vector<Contender> contenders;
  std::vector<size_t> of;  // the index of what each contender runs
  for (size_t i = 0; i < compared.size(); ++i) {
    Contender contender{compared[i].job.name, {}};
    for (const uint64_t seed : seeds)
      for (size_t k = 0; k < plan.size(); ++k)
        if (plan[k].compared == i && plan[k].job.task.seed == seed)
          contender.runs.push_back(files[k]);
    // As a reader of the folder finds them, wherever it is moved to.
    for (RunFiles& run : contender.runs)
      run.folder = std::filesystem::path(run.folder).lexically_relative(folder).string();
    if (contender.runs.empty()) continue;
    contenders.push_back(std::move(contender));
    of.push_back(i);
  }
  Comparison result = summarise(job.name, job, contenders);
  for (size_t row = 0; row < of.size(); ++row) result.strategies[row].tuning = found[of[row]];
  result.task.seeds = seeds;
  if (capabilities_of(job.cluster).declared_hosts)
    result.cluster.machines = hosts_of(job.cluster, job.cluster.workers);
  result.not_possible = not_possible(compared);
  result.spent = account.close();
  write_file(folder + "/compare.json", json_text(json_of(result)) + "\n");
  write_file(folder + "/compare.csv", comparison_csv(result));
  return result;
}

}  // namespace tutti

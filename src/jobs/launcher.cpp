#include "jobs/launcher.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "core/error.h"
#include "fabric/capabilities.h"
#include "fabric/outcome.h"
#include "jobs/batch_losses.h"
#include "jobs/briefing.h"
#include "jobs/data_file.h"
#include "jobs/diary.h"
#include "jobs/energy.h"
#include "jobs/participant.h"
#include "jobs/plan_json.h"
#include "jobs/plugins.h"
#include "jobs/record_book.h"
#include "jobs/run_energy.h"
#include "jobs/run_folder.h"
#include "jobs/run_pictures.h"
#include "jobs/run_quality.h"
#include "jobs/task_identity.h"

namespace tutti {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A node that came back too late finds its peers gone. If the peer that it missed and others of its
// own role ended well, the node counts as lost, not as failed.
void note_late(std::vector<NodeOutcome>& outcomes, const std::vector<std::string>& roles) {
  using Kind = NodeOutcome::Kind;
  std::set<std::string> done;
  for (size_t rank = 0; rank < outcomes.size(); ++rank)
    if (outcomes[rank].kind == Kind::kDone) done.insert(roles[rank]);
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    NodeOutcome& outcome = outcomes[rank];
    if (outcome.kind == Kind::kFailed && outcome.exit_code == kExitPeerLost &&
        outcome.lost_peer != kAnyRank && done.contains(roles[rank]) &&
        outcomes[static_cast<size_t>(outcome.lost_peer)].kind == Kind::kDone)
      outcome.kind = Kind::kLost;
  }
}

// The one reason to name when nodes ended in different ways. A node that diverged takes its peers
// with it, and a lost node makes the others fail: the cause comes before its consequences. Where
// the strategy goes on without lost nodes, they are only noted.
void judge(RunRecord& record, const Plan& plan) {
  record.status = RunStatus::kDone;
  note_late(record.outcomes, plan.roles());
  const bool somebody_done =
      std::any_of(record.outcomes.begin(), record.outcomes.end(),
                  [](const NodeOutcome& o) { return o.kind == NodeOutcome::Kind::kDone; });
  const auto find = [&](auto matches) -> bool {
    for (size_t rank = 0; rank < record.outcomes.size(); ++rank) {
      const NodeOutcome& outcome = record.outcomes[rank];
      if (!matches(outcome)) continue;
      if (outcome.kind == NodeOutcome::Kind::kLost && somebody_done && plan.nodes[rank].may_be_lost)
        continue;
      record.error = outcome.error.empty() ? fmt::format("rank {} was lost", rank) : outcome.error;
      record.exit_code = outcome.exit_code;
      return true;
    }
    return false;
  };
  using Kind = NodeOutcome::Kind;
  if (find([](const NodeOutcome& o) { return o.kind == Kind::kInterrupted; })) {
    record.status = RunStatus::kInterrupted;
    if (record.error == word_of(record.status))
      record.error = "stopped from outside; the record is kept";
    record.exit_code = kExitInterrupted;
  } else if (find([](const NodeOutcome& o) { return o.exit_code == kExitDiverged; })) {
    record.status = RunStatus::kDiverged;
  } else if (find([](const NodeOutcome& o) {
               return o.kind == Kind::kFailed && o.exit_code != kExitPeerLost;
             })) {
    record.status = RunStatus::kFailed;
  } else if (find([&](const NodeOutcome& o) {  // it missed the node that was lost, and not another
               return o.kind == Kind::kFailed && o.lost_peer != kAnyRank &&
                      record.outcomes[static_cast<size_t>(o.lost_peer)].kind == Kind::kLost;
             }) ||
             find([](const NodeOutcome& o) { return o.kind == Kind::kFailed; }) ||
             find([](const NodeOutcome& o) { return o.kind == Kind::kLost; })) {
    record.status = RunStatus::kPeerLost;
    record.exit_code = kExitPeerLost;
  }
}

Recruiting recruit(const Resolved& resolved) {
  const Job& job = resolved.job;
  const int64_t count = guests_of(job.cluster, std::ssize(resolved.plan.nodes));
  if (count == 0) return {};
  return {make_briefing(resolved),
          [count](const std::string& address, const std::string& token) {
            tell(fmt::format(
                "tutti: waiting for {} to join; run on each machine:\n"
                "  tutti join {} --token {}\n",
                count == 1 ? "1 node" : fmt::format("{} nodes", count), address, token));
          },
          [](Rank rank, const std::string& origin) {
            tell(fmt::format("tutti: {} joined as rank {}\n", origin, rank));
          }};
}

void add_footprint(RunRecord& record, const Job& job) {
  record.co2e = co2e_grams(job.footprint, record.joules);
  record.kwh = kilowatt_hours(job.footprint, record.joules);
  record.cost = cost_of(job.footprint, job.cluster, record.machines, total_seconds(record));
}

// What a node reported of itself. Throws DataError: it may run elsewhere, and be another program.
NodeReport report_of(const NodeOutcome& outcome, int rank, const std::string& role) {
  NodeReport report = node_report(outcome.result);
  if (report.rank != rank || report.role != role)
    throw DataError(fmt::format("it reported as rank {}, a {}", report.rank, report.role));
  const auto countable = [](auto number) {
    constexpr int64_t kMost = int64_t{1} << 53;  // what a number in JSON counts exactly
    return std::cmp_greater_equal(number, 0) && std::cmp_less_equal(number, kMost);
  };
  if (!countable(report.bytes_sent) || !countable(report.messages) || !countable(report.steps) ||
      !countable(report.samples) || !countable(report.own_samples))
    throw DataError("it reported numbers that cannot be");
  return report;
}

// A report that cannot be used makes a failure of its node; the others' are kept, and the record.
void collect_reports(RunRecord& record, const std::vector<std::string>& roles) {
  for (size_t rank = 0; rank < record.outcomes.size(); ++rank) {
    NodeOutcome& outcome = record.outcomes[rank];
    const bool done = outcome.kind == NodeOutcome::Kind::kDone;
    if (outcome.result.empty() && !done) continue;
    try {
      record.nodes.push_back(report_of(outcome, static_cast<int>(rank), roles[rank]));
    } catch (const DataError& error) {
      const std::string what =
          fmt::format("rank {}: {}; does it run this version of tutti?", rank, error.what());
      outcome.error = outcome.error.empty() ? what : outcome.error + "; and " + what;
      if (!done) continue;  // its own end comes first
      outcome.kind = NodeOutcome::Kind::kFailed;
      outcome.exit_code = kExitInternal;
    }
  }
}

void leave_if(const std::atomic<bool>& stop) {
  if (stop.load()) throw InterruptedError();
}

std::vector<NodeOutcome> nothing_started(size_t nodes) {
  NodeOutcome outcome;
  outcome.kind = NodeOutcome::Kind::kInterrupted;
  outcome.exit_code = kExitInterrupted;
  outcome.error = "interrupted before anything was started";
  return std::vector<NodeOutcome>(nodes, outcome);
}

struct Setting {
  Stage stage;
  std::unique_ptr<Fabric> fabric;
};

// All that takes time before the first node is there. Throws InterruptedError between its parts,
// which do not look at `stop` themselves.
Setting set_up(const Resolved& resolved, const LaunchOptions& options, const std::string& folder,
               double data_s, RecordBook& book, const std::atomic<bool>& stop) {
  const ClusterConfig& cluster = resolved.job.cluster;
  leave_if(stop);
  // All simulated nodes share a process.
  const int threads =
      capabilities_of(cluster).declared_hosts ? 1 : static_cast<int>(most_threads(cluster));
  const ModelMaker& models =
      cluster.cost_only ? kCostModels : load_models(resolved.architecture, threads);
  leave_if(stop);
  const Recruiting recruiting = recruit(resolved);
  leave_if(stop);
  return {Stage{.resolved = resolved,
                .models = models,
                .folder = folder,
                .progress = options.progress,
                .data_s = data_s,
                .book = &book},
          make_fabric(cluster, resolved.plan.roles(), resolved.job.task.seed, recruiting)};
}

// Runs every node; the outcomes are those of an interrupted run if it does not come to that.
void run_nodes(RunRecord& record, const Resolved& resolved, const LaunchOptions& options,
               const std::atomic<bool>& stop) {
  const Job& job = resolved.job;
  const std::vector<std::string> roles = resolved.plan.roles();
  const auto start = std::chrono::steady_clock::now();
  RecordBook book;
  std::optional<Setting> setting;
  try {
    setting.emplace(set_up(resolved, options, record.folder,
                           record.virtual_clock ? 0 : record.data_s, book, stop));
  } catch (const InterruptedError&) {
    record.outcomes = nothing_started(roles.size());
  }
  const double load_s = seconds_since(start);
  FabricFigures figures;
  if (setting) {
    record.outcomes =
        setting->fabric->run([&](Node& node) { return participate(setting->stage, node); }, stop);
    figures = setting->fabric->figures();
  }
  collect_reports(record, roles);
  record.evaluations = RecordBook::Reader(book).news();
  add_reported(record.evaluations, record.nodes);
  record.startup_s = load_s + figures.startup_s;
  judge(record, resolved.plan);
  judge_quality(record, job);
  add_energy(record, job, figures);
  add_footprint(record, job);
}

// The costs of reading the data.
struct Reading {
  double seconds = 0, cpu_s = 0, joules = 0;
};

double own_cpu_seconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

RunRecord run(const Resolved& resolved, const Reading& reading, const LaunchOptions& options,
              const std::atomic<bool>& stop) {
  const Job& job = resolved.job;
  const Data& data = resolved.data;
  const Plan& plan = resolved.plan;
  RunRecord record;
  record.data_s = reading.seconds;
  record.data_cpu_s = reading.cpu_s;
  record.data_joules = reading.joules;
  record.virtual_clock = job.cluster.fabric == FabricKind::kVirtual;
  record.plan = plan.in_words;
  if (record.virtual_clock) record.machines = hosts_of(job.cluster, std::ssize(plan.nodes));
  record.metric = resolved.architecture.classification ? "accuracy" : "mse";
  record.higher_is_better = resolved.architecture.classification;
  if (record.higher_is_better)
    record.chance = 1 / static_cast<double>(std::max<int64_t>(1, data.dataset->classes()));
  record.validation_samples = data.splits.validation.size();
  record.unscaled = data.spread && !data.spread->standardised;
  record.resumed = plan.resumed;
  record.course = course_of(plan);
  record.recorder = plan.recorder;
  record.workers = plan.workers;
  RunFolder folder;  // locked until the record is written
  if (options.keep_files) {
    folder = create_run_folder(options.out, job.name + "-" + job.strategy_kind);
    record.folder = folder.path;
    write_file(record.folder + "/job.toml", resolved_toml(job));
    write_file(record.folder + "/plan.json", json_text(to_json(plan), 2) + "\n");
  }
  const auto start = std::chrono::steady_clock::now();
  // The identity is computed after the clock of reading stopped: only the record needs it.
  if (options.keep_files) record.task = task_identity(job, resolved);
  if (options.prediction && record.task && options.prediction->task == record.task->fingerprint)
    record.prediction = options.prediction;
  // The data is described for predictions. A run with cost_only has no parameters to predict with.
  if (options.keep_files && !job.cluster.cost_only)
    save_run_data(record.folder, run_data(job, resolved, *record.task));
  run_nodes(record, resolved, options, stop);
  record.wall_s = reading.seconds + seconds_since(start);
  if (!options.keep_files) return record;
  try {
    if (!lost_nodes(record).empty())
      complete_diary(record.folder, record.evaluations, record.virtual_clock ? 0 : record.data_s);
    write_batch_losses(record.folder, record.nodes);  // before run.json, which marks a complete run
    write_file(record.folder + "/run.json", json_text(to_json(record, job), 2) + "\n");
  } catch (const DataError& error) {
    if (record.exit_code == kExitDone) throw;
    record.error += fmt::format("; and {}", error.what());  // the run's own end comes first
  }
  return record;
}

}  // namespace

RunRecord launch(Job& job, const LaunchOptions& options, const std::atomic<bool>& stop) {
  EnergyCounters counters;
  const auto start = std::chrono::steady_clock::now();
  const double cpu_before_s = own_cpu_seconds();
  leave_if(stop);
  const Resolved resolved = resolve(job);
  job = resolved.job;
  leave_if(stop);
  require_memory(job, resolved.plan);
  leave_if(stop);
  if (options.progress == ProgressStyle::kLines || options.progress == ProgressStyle::kLive)
    tell(remarks_on(resolved.data));
  counters.sample();
  const Reading reading{seconds_since(start), own_cpu_seconds() - cpu_before_s, counters.joules()};
  return run(resolved, reading, options, stop);
}

RunRecord launch(const Resolved& resolved, const LaunchOptions& options,
                 const std::atomic<bool>& stop) {
  return run(resolved, {}, options, stop);
}

}  // namespace tutti

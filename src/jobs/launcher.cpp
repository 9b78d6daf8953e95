#include "jobs/launcher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "fabric/outcome.h"
#include "jobs/energy.h"
#include "jobs/participant.h"
#include "jobs/plugins.h"
#include "jobs/predict_cost.h"
#include "jobs/run_folder.h"

namespace tutti {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The one reason to name when nodes ended in different ways. A node that diverged takes its peers
// with it, and a lost node makes the others fail: the cause comes before its consequences. Where
// the strategy goes on without lost nodes, they are only noted.
void judge(RunRecord& record, const Job& job) {
  record.status = "done";
  const std::vector<std::string> roles = job.strategy->roles(job.cluster);
  bool somebody_done = false, fatal = false;
  for (size_t rank = 0; rank < record.outcomes.size(); ++rank) {
    const NodeOutcome::Kind kind = record.outcomes[rank].kind;
    if (kind == NodeOutcome::Kind::kLost) record.lost.push_back(static_cast<int>(rank));
    somebody_done = somebody_done || kind == NodeOutcome::Kind::kDone;
    fatal = fatal ||
            (kind != NodeOutcome::Kind::kDone &&
             !(kind == NodeOutcome::Kind::kLost && job.strategy->goes_on_without(roles[rank])));
  }
  if (somebody_done && !fatal) return;
  const auto find = [&](auto matches) -> bool {
    for (size_t rank = 0; rank < record.outcomes.size(); ++rank) {
      const NodeOutcome& outcome = record.outcomes[rank];
      if (!matches(outcome)) continue;
      record.error = outcome.error.empty() ? fmt::format("rank {} was lost", rank) : outcome.error;
      record.exit_code = outcome.exit_code;
      return true;
    }
    return false;
  };
  using Kind = NodeOutcome::Kind;
  if (find([](const NodeOutcome& o) { return o.kind == Kind::kInterrupted; })) {
    record.status = "interrupted";
    record.exit_code = kExitInterrupted;
  } else if (find([](const NodeOutcome& o) { return o.exit_code == kExitDiverged; })) {
    record.status = "diverged";
  } else if (find([](const NodeOutcome& o) {
               return o.kind == Kind::kFailed && o.exit_code != kExitPeerLost;
             })) {
    record.status = "failed";
  } else if (find([](const NodeOutcome& o) { return o.kind == Kind::kFailed; }) ||
             find([](const NodeOutcome& o) { return o.kind == Kind::kLost; })) {
    record.status = "peer lost";
    record.exit_code = kExitPeerLost;
  }
}

void add_energy(RunRecord& record, const Job& job, const FabricFigures& figures) {
  if (figures.joules >= 0) {
    record.joules = figures.joules;
    record.energy_method = "simulated from the power of idle and busy hosts and links";
    return;
  }
  for (const NodeReport& node : record.nodes)
    if (node.joules >= 0) {  // one node of a machine reads its counters
      record.joules += node.joules;
      record.energy_method = node.energy_method;
    }
  if (!record.energy_method.empty()) return;
  double cpu_s = 0, total_s = 0;
  for (const NodeReport& node : record.nodes) {
    cpu_s += node.cpu_s;
    total_s = std::max(total_s, node.total_s);
  }
  const Energy energy = estimate_energy(
      total_s, cpu_s, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)), job.footprint.tdp_watts);
  record.joules = energy.joules;
  record.energy_method = energy.method;
}

void add_footprint(RunRecord& record, const Job& job) {
  double seconds = 0;
  for (const NodeReport& node : record.nodes) seconds = std::max(seconds, node.total_s);
  const auto nodes = static_cast<double>(record.outcomes.size());
  const double machines =
      record.virtual_clock ? std::ceil(nodes / static_cast<double>(job.cluster.nodes_per_host)) : 1;
  record.co2e = co2e_grams(job.footprint, record.joules);
  record.cost = cost_of(job.footprint, machines, seconds);
}

}  // namespace

RunRecord launch(Job& job, const LaunchOptions& options, const std::atomic<bool>& stop) {
  const auto data_start = std::chrono::steady_clock::now();
  const auto [data, architecture] = prepare(job);

  RunRecord record;
  record.data_s = seconds_since(data_start);
  record.virtual_clock = job.cluster.fabric == "virtual";
  record.metric = architecture.classification ? "accuracy" : "mse";
  record.higher_is_better = architecture.classification;
  if (options.keep_files) {
    record.folder = create_run_folder(options.out, job.name + "-" + job.strategy_kind);
    write_file(record.folder + "/job.toml", resolved_toml(job));
  }

  const auto start = std::chrono::steady_clock::now();
  Stage stage{.job = job,
              .data = data,
              .architecture = architecture,
              .make_model = job.cluster.cost_only
                                ? nullptr
                                : load_torch_models(static_cast<int>(job.cluster.threads)),
              .folder = record.folder,
              .progress = options.progress,
              .total_steps = predicted_steps(job, data),
              .predicted_memory_bytes = predicted_memory_bytes(job, architecture)};
  const double load_s = seconds_since(start);
  const auto fabric = make_fabric(job.cluster, job.strategy->roles(job.cluster), job.task.seed);
  record.outcomes = fabric->run([&](Node& node) { return participate(stage, node); }, stop);
  for (const NodeOutcome& outcome : record.outcomes)
    if (!outcome.result.empty()) record.nodes.push_back(node_report(outcome.result));
  const FabricFigures figures = fabric->figures();
  record.startup_s = load_s + figures.startup_s;
  judge(record, job);
  add_energy(record, job, figures);
  add_footprint(record, job);
  record.wall_s = seconds_since(data_start);
  if (!options.keep_files) return record;
  try {
    write_file(record.folder + "/run.json", json_text(to_json(record, job), 2) + "\n");
  } catch (const DataError& error) {
    if (record.exit_code == kExitDone) throw;
    record.error += fmt::format("; and {}", error.what());  // the run's own end comes first
  }
  return record;
}

}  // namespace tutti

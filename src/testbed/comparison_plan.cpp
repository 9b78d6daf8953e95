#include "testbed/comparison_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tutti {
namespace {

// Those with the same key share a learning curve.
std::string curve_key(const Job& job, const std::string& equivalence) {
  if (job.cluster.fabric != FabricKind::kVirtual || job.cluster.cost_only) return "";
  return curve_class(job, equivalence);
}

// One worker computes whole batches and sends nothing: nobody computes the curve for less.
bool is_cheapest(const Job& job) { return job.cluster.workers == 1; }

}  // namespace

std::string curve_class(const Job& job, const std::string& equivalence) {
  if (equivalence.empty()) return "";
  Job what;
  what.task = job.task;
  what.optimizer = job.optimizer;
  return equivalence + "\n" + resolved_toml(what);
}

bool runs_alone(const Job& job) { return job.cluster.fabric != FabricKind::kVirtual; }

std::vector<PlannedRun> plan_runs(const std::vector<ComparedJob>& compared,
                                  const std::vector<uint64_t>& seeds, bool share_curves) {
  std::vector<PlannedRun> alone, others;
  std::map<std::string, size_t> leading;  // by curve, the ComparedJob
  const auto key_of = [&](const PlannedRun& run) {
    return share_curves ? curve_key(run.job, compared[run.compared].plan.equivalence) : "";
  };
  for (const uint64_t seed : seeds)
    for (size_t i = 0; i < compared.size(); ++i) {
      if (!compared[i].refusal.empty()) continue;
      PlannedRun run{i, fmt::format("{}-seed{}", compared[i].job.name, seed),
                     with_settings(compared[i].job, {}), std::nullopt};
      run.job.task.seed = seed;
      if (const std::string key = key_of(run); !key.empty()) {
        const auto [found, fresh] = leading.emplace(key, i);
        if (!fresh && is_cheapest(run.job) && !is_cheapest(compared[found->second].job))
          found->second = i;
      }
      (runs_alone(run.job) ? alone : others).push_back(std::move(run));
    }
  const auto follows = std::stable_partition(others.begin(), others.end(), [&](const auto& run) {
    const auto found = leading.find(key_of(run));
    return found == leading.end() || found->second == run.compared;
  });
  std::vector<PlannedRun> plan = std::move(alone);
  std::map<std::string, size_t> index;  // of the leader of each curve
  for (auto run = others.begin(); run != others.end(); ++run) {
    const std::string key = key_of(*run);
    if (run >= follows)
      run->leader = index.at(key);
    else if (!key.empty())
      index[key] = plan.size();
    plan.push_back(std::move(*run));
  }
  return plan;
}

Job follower_job(const Job& job, int64_t steps) {
  Job result = with_settings(job, {});
  result.cluster.cost_only = true;
  // 0 would mean all of them; a leader that diverged at once has still tried one.
  result.task.max_steps = std::max<int64_t>(1, steps);
  return result;
}

}  // namespace tutti

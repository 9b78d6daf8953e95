#include "testbed/step_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "testbed/cost_run.h"

namespace tutti {
namespace {

constexpr int64_t kWarmUp = 2;
constexpr int64_t kSteps = 8;         // where every step is like the other
constexpr int64_t kRandomSteps = 64;  // where they differ
constexpr int64_t kMostSteps = 64 * 256;
// What nodes that do not wait for each other still have under way when a run ends may take longer
// than its steps: the longer run takes at least this many times as long as the shorter one.
constexpr double kOutweighs = 5;
constexpr int kStragglerSeeds = 3;
constexpr double kWireShare = 0.957;  // of the bandwidth that payloads get, as the fabric has it

RunRecord run_steps(Job job, const Data& data, int64_t steps, const std::atomic<bool>& stop) {
  job.task.max_steps = steps;
  job.task.epochs = 1 << 20;  // the steps decide
  job.task.eval_every = 1e9;  // only at the end
  return run_costs(std::move(job), data, stop);
}

double total_s(const RunRecord& record) {
  double most = 0;
  for (const NodeReport& node : record.nodes) most = std::max(most, node.total_s);
  return most;
}

// Bytes that one direction of a host's link carries, less those of the shorter run.
void find_busiest_link(const RunRecord& longer, const RunRecord& shorter,
                       const ClusterConfig& cluster, double seconds, StepFigures& figures) {
  std::map<int64_t, double> sent, received;  // by host
  std::map<int64_t, int> first_node;         // of each
  const auto add = [&](const RunRecord& record, double sign) {
    for (const NodeReport& node : record.nodes)
      for (const auto& [peer, bytes] : node.links) {
        const int64_t from = host_of(cluster, node.rank), to = host_of(cluster, peer);
        first_node.emplace(from, node.rank);
        first_node.emplace(to, peer);
        if (from == to) continue;
        sent[from] += sign * static_cast<double>(bytes);
        received[to] += sign * static_cast<double>(bytes);
      }
  };
  add(longer, 1);
  add(shorter, -1);
  const auto look = [&](const std::map<int64_t, double>& loads, bool receives) {
    for (const auto& [host, bytes] : loads) {
      const double share = bytes / (cluster.bandwidth * kWireShare) / seconds;
      if (share <= figures.busiest_link + 1e-9) continue;
      figures.busiest_link = share;
      figures.busiest_node = first_node.at(host);
      figures.busiest_receives = receives;
    }
  };
  look(sent, false);
  look(received, true);
}

// Nodes that do not wait for each other end one after the other, and some talk only every so many
// steps: a few steps would drown in that.
bool steps_are_synchronous(const Job& job) {
  return job.strategy->taxonomy().timing == Timing::kSynchronous;
}

StepFigures simulate_once(const Job& job, const Data& data, int64_t steps,
                          const std::atomic<bool>& stop) {
  const Plan plan = resolve(job, data).plan;
  const auto whole_periods = [&](int64_t least) {
    return (least + plan.recurs_every - 1) / plan.recurs_every * plan.recurs_every;
  };
  const int64_t warm_up = whole_periods(std::max(kWarmUp, plan.settling_steps));
  steps = whole_periods(steps);
  const RunRecord shorter = run_steps(job, data, warm_up, stop);
  RunRecord longer = run_steps(job, data, warm_up + steps, stop);
  const bool may_drown = !steps_are_synchronous(job) && plan.settling_steps == 0;
  while (may_drown && steps < kMostSteps && total_s(longer) < kOutweighs * total_s(shorter)) {
    steps *= 4;
    longer = run_steps(job, data, warm_up + steps, stop);
  }
  const auto count = static_cast<double>(steps);
  const double seconds = total_s(longer) - total_s(shorter);
  if (!(seconds > 0))
    throw Error(fmt::format("{} simulated steps take no longer than {}", warm_up + steps, warm_up));
  StepFigures figures;
  figures.nodes = static_cast<int64_t>(longer.nodes.size());
  figures.step_s = seconds / count;
  figures.watts = (longer.joules - shorter.joules) / seconds;
  double total = 0;
  for (size_t i = 0; i < longer.nodes.size(); ++i) {
    const NodeReport &after = longer.nodes[i], &before = shorter.nodes[i];
    total += after.total_s - before.total_s;
    figures.compute += after.compute_s - before.compute_s;
    figures.communicate += after.communicate_s - before.communicate_s;
    figures.aggregate += after.aggregate_s - before.aggregate_s;
    figures.wait += after.wait_s - before.wait_s;
    const double bytes = static_cast<double>(after.bytes_sent - before.bytes_sent) / count;
    if (i > 0 && bytes <= figures.bytes) continue;
    figures.bytes = bytes;
    figures.messages = static_cast<double>(after.messages - before.messages) / count;
  }
  for (double* share : {&figures.compute, &figures.communicate, &figures.aggregate, &figures.wait})
    *share = std::clamp(*share / total, 0.0, 1.0);  // ends differ a little between the two runs
  find_busiest_link(longer, shorter, job.cluster, seconds, figures);
  return figures;
}

}  // namespace

bool has_chance(const ClusterConfig& cluster) {
  return std::any_of(cluster.stragglers.begin(), cluster.stragglers.end(),
                     [](const StragglerConfig& s) { return s.kind != StragglerKind::kConstant; });
}

StepFigures simulate_steps(const Job& job, const Data& data, const std::atomic<bool>& stop) {
  if (!has_chance(job.cluster))
    return simulate_once(job, data, steps_are_synchronous(job) ? kSteps : kRandomSteps, stop);
  StepFigures mean;
  double least_s = INFINITY, most_s = 0, sum_s = 0;
  for (int seed = 0; seed < kStragglerSeeds; ++seed) {
    Job seeded = job;
    seeded.task.seed = job.task.seed + static_cast<uint64_t>(seed);
    mean = simulate_once(seeded, data, kRandomSteps, stop);
    least_s = std::min(least_s, mean.step_s);
    most_s = std::max(most_s, mean.step_s);
    sum_s += mean.step_s;
  }
  mean.step_s = sum_s / kStragglerSeeds;
  mean.step_error = (most_s - least_s) / 2 / mean.step_s;
  return mean;
}

}  // namespace tutti

#include "testbed/learning.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "fabric/outcome.h"
#include "jobs/launcher.h"

namespace tutti {
namespace {

Job make_learner(const Job& job, int64_t most_workers, std::string& method) {
  Job learner = job;
  const std::string equal = job.strategy->equivalence(job.task);
  if (!equal.empty()) {
    learner.strategy_kind = "solo";
    learner.strategy = make_strategy("solo");
    learner.strategy->fit(learner.cluster);
    method = fmt::format("gradients of one worker, equal for the class \"{}\"", equal);
  } else {
    shrink_cluster(learner.cluster, most_workers);
    method = learner.cluster.workers < job.cluster.workers
                 ? fmt::format("gradients of {} workers; that {} learn alike is assumed",
                               learner.cluster.workers, job.cluster.workers)
                 : fmt::format("gradients of all {} workers", learner.cluster.workers);
  }
  learner.task.stop_at_target = true;
  return learner;
}

}  // namespace

Learning measure_learning(const Job& job, const Prepared& prepared, int seeds, int64_t most_workers,
                          const Announce& announce, const std::atomic<bool>& stop) {
  Learning learning;
  Job learner = make_learner(job, most_workers, learning.method);
  learning.workers = learner.cluster.workers;
  learning.global_batch = job.task.global_batch;
  double least = INFINITY, most = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    announce(fmt::format("learning: {}, batch {}, seed {} of {}", job.name, job.task.global_batch,
                         seed + 1, seeds));
    learner.task.seed = job.task.seed + static_cast<uint64_t>(seed);
    const RunRecord record = launch(learner, prepared, {.out = "", .keep_files = false}, stop);
    if (record.exit_code == kExitInterrupted) throw InterruptedError();
    ++learning.runs;
    if (record.exit_code != kExitDone || record.nodes.empty()) continue;  // diverged: not reached
    const std::vector<EvaluationRow>& rows = record.nodes.front().evaluations;
    double best = record.higher_is_better ? 0 : INFINITY;
    for (size_t i = 0; i < rows.size(); ++i) {
      const double quality = rows[i].quality;
      best = record.higher_is_better ? std::max(best, quality) : std::min(best, quality);
      const bool meets =
          record.higher_is_better ? quality >= job.task.target : quality <= job.task.target;
      if (!meets) continue;
      const auto steps = static_cast<double>(rows[i].step);
      ++learning.reached;
      learning.steps += steps;
      learning.evaluations += static_cast<double>(i + 1);
      least = std::min(least, steps);
      most = std::max(most, steps);
      break;
    }
    learning.best_quality += best / seeds;
  }
  if (learning.reached > 0) {
    learning.steps /= learning.reached;
    learning.evaluations /= learning.reached;
    learning.error = (most - least) / 2 / learning.steps;
  }
  return learning;
}

BatchCurve fit_batch_curve(std::vector<std::pair<double, double>> measured) {
  BatchCurve curve;
  curve.measured = std::move(measured);
  const auto n = static_cast<double>(curve.measured.size());
  if (n < 3) return curve;
  double x = 0, y = 0, xx = 0, xy = 0;  // x = 1/B, y = S
  for (const auto& [batch, steps] : curve.measured) {
    x += 1 / batch;
    y += steps;
    xx += 1 / batch / batch;
    xy += steps / batch;
  }
  const double slope = (n * xy - x * y) / (n * xx - x * x);
  const double intercept = (y - slope * x) / n;
  if (!(slope > 0)) return curve;
  // A fit may put the least number of steps at or below zero: then no batch measured was large
  // enough to waste samples, and the curve says only that.
  if (!(intercept > 0)) return curve;
  curve.least_steps = intercept;
  curve.critical_batch = slope / intercept;
  return curve;
}

}  // namespace tutti

#include "testbed/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "testbed/measured_records.h"

namespace tutti {

double machines(const Choice& choice) {
  return static_cast<double>(hosts_of(choice.job.cluster, choice.step.nodes));
}

double Choice::time_s() const {
  if (times_s.empty()) return learning.steps * step.step_s;
  return std::accumulate(times_s.begin(), times_s.end(), 0.0) / static_cast<double>(times_s.size());
}

double TimeErrors::of_a_simulation() const { return std::hypot(seeds, simulation, cost); }

double TimeErrors::all() const { return std::hypot(of_a_simulation(), network, history); }

TimeErrors Choice::errors() const {
  TimeErrors errors;
  const std::optional<Spread> own = spread_of(times_s);
  if (own || lent)
    errors.seeds =
        half_width_of_next(own ? *own : *lent, std::max(1, static_cast<int>(times_s.size())),
                           1 / std::max(1.0, learning.evaluations));
  errors.simulation = simulation_error;
  errors.cost = step.compute * cost_error;  // of the share of the time that it makes up
  errors.network =
      kNormalOf90Percent * kDeviationByMeanSize * kNetworkValidation.mean_absolute_error;
  // What those runs were off includes the other parts: together they are no less than that.
  if (const double others = errors.all(); history_error > others)
    errors.history = std::sqrt(history_error * history_error - others * others);
  return errors;
}

void lend_spreads(std::vector<Choice>& choices) {
  std::vector<Spread> known;
  std::set<std::string> classes;  // whose members ran with the same seeds: they count once
  for (const Choice& choice : choices)
    if (const std::optional<Spread> own = spread_of(choice.times_s))
      if (choice.equivalence.empty() || classes.insert(choice.equivalence).second)
        known.push_back(*own);
  for (Choice& choice : choices) choice.lent = common_spread(known);
}

void rank(std::vector<Choice>& choices) {
  std::stable_sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
    if (a.fits != b.fits) return a.fits;
    if (a.reaches() != b.reaches()) return a.reaches();
    if (a.is_judged() != b.is_judged()) return a.is_judged();
    if (a.always_reaches() != b.always_reaches()) return a.always_reaches();
    return a.reaches() ? a.time_s() < b.time_s() : a.step_s() < b.step_s();
  });
}

std::string where(const Choice& choice) {
  const ClusterConfig& cluster = choice.job.cluster;
  if (cluster.nodes_per_host > 1)
    return fmt::format("with {} worker{}", cluster.workers, cluster.workers == 1 ? "" : "s");
  const auto count = std::max<int64_t>(1, std::llround(machines(choice)));
  if (choice.fastest)
    return count == 1 ? "on the fastest node" : fmt::format("on the {} fastest nodes", count);
  return fmt::format("on {} node{}", count, count == 1 ? "" : "s");
}

}  // namespace tutti

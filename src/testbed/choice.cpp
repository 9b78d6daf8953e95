#include "testbed/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "fabric/virtual/validation.h"
#include "jobs/footprint.h"

namespace tutti {
namespace {

double machines(const Choice& choice) {
  return static_cast<double>(hosts_of(choice.job.cluster, choice.step.nodes));
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

}  // namespace

double Choice::time_s() const {
  if (times_s.empty()) return learning.steps * step.step_s;
  return std::accumulate(times_s.begin(), times_s.end(), 0.0) / static_cast<double>(times_s.size());
}

double TimeErrors::of_a_simulation() const { return std::hypot(seeds, simulation, cost); }

double TimeErrors::all() const { return std::hypot(of_a_simulation(), network); }

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
    return a.reaches() ? a.time_s() < b.time_s() : a.step_s() < b.step_s();
  });
}

std::vector<std::string> reasons(const Choice& choice) {
  const StepFigures& step = choice.step;
  std::vector<std::string> text;
  if (step.compute + step.aggregate > 0.8)
    text.push_back(fmt::format("computes {} of the time: the network hardly matters",
                               percent(step.compute + step.aggregate)));
  if (step.busiest_link > 0.5)
    text.push_back(fmt::format("the link of node {} is busy {} {} of the time", step.busiest_node,
                               step.busiest_receives ? "receiving" : "sending",
                               percent(std::min(1.0, step.busiest_link))));
  else if (step.communicate + step.wait > 0.3 && step.messages > 0)
    text.push_back(fmt::format(
        "communicates or waits {} of the time although its busiest link is used only {}: {:.0f} "
        "messages a step, one after the other",
        percent(step.communicate + step.wait), percent(step.busiest_link), step.messages));
  if (step.wait > 0.3)
    text.push_back(fmt::format("nodes wait {} of the time for later ones", percent(step.wait)));
  if (!choice.learning.failure.empty())
    text.push_back(choice.learning.failure);
  else if (!choice.reaches())
    text.push_back(fmt::format("the target was not reached in {} epochs (best {:.4g})",
                               choice.job.task.epochs, choice.learning.best_quality));
  if (!choice.fits)
    text.push_back(fmt::format("needs {} on a node of {}",
                               human_quantity(choice.memory_bytes, Unit::kBytes),
                               human_quantity(choice.job.cluster.memory_bytes, Unit::kBytes)));
  if (text.empty())
    text.push_back(fmt::format("computes {}, communicates {}, waits {}",
                               percent(step.compute + step.aggregate), percent(step.communicate),
                               percent(step.wait)));
  return text;
}

nlohmann::json to_json(const Choice& c) {
  using nlohmann::json;
  const auto when_reached = [&](double value) { return c.reaches() ? json(value) : json(); };
  const TimeErrors errors = c.errors();
  // Nothing is known of it where no strategy ran with two seeds.
  const json seeds = c.times_s.size() > 1 || c.lent ? json(errors.seeds) : json();
  const Figure co2e = co2e_grams(c.job.footprint, c.joules());
  const Figure cost =
      cost_of(c.job.footprint, c.job.cluster, static_cast<int64_t>(machines(c)), c.time_s())
          .on_demand;
  return {{"name", c.name},
          {"strategy", c.job.strategy_kind},
          {"workers", c.job.cluster.workers},
          {"plan", c.plan},
          {"machines", machines(c)},
          {"reached", c.reaches()},
          {"fits", c.fits},
          {"time_s", when_reached(c.time_s())},
          {"error", when_reached(c.error())},
          {"errors",
           {{"seeds", c.reaches() ? seeds : json()},
            {"simulation", when_reached(errors.simulation)},
            {"cost", when_reached(errors.cost)},
            {"network", when_reached(errors.network)}}},
          {"joules", when_reached(c.joules())},
          {"co2e_g", when_reached(co2e.value)},
          {"cost", when_reached(cost.value)},
          {"currency", c.job.footprint.currency},
          {"step_s", c.step_s()},
          {"step_error", c.step.step_error},
          {"steps_to_target", when_reached(c.learning.steps)},
          {"steps_error", when_reached(c.learning.error)},
          {"bytes_per_step", c.step.bytes},
          {"messages_per_step", c.step.messages},
          {"shares",
           {{"compute", c.step.compute},
            {"communicate", c.step.communicate},
            {"aggregate", c.step.aggregate},
            {"wait", c.step.wait}}},
          {"busiest_link", c.step.busiest_link},
          {"memory_bytes", c.memory_bytes},
          {"learning", c.learning.method},
          {"reasons", reasons(c)}};
}

}  // namespace tutti

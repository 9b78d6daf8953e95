// What people read of settings: of a search for the best value, and of those at fault where
// nothing was learnt.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/units.h"
#include "jobs/run_status.h"
#include "testbed/tuning.h"
#include "testbed/variants.h"

namespace tutti {
namespace {

const ComparedTuning* first_of(const Comparison& comparison) {
  for (const ComparedStrategy& row : comparison.strategies)
    if (row.tuning) return &*row.tuning;
  return nullptr;
}

std::string seconds(double value) { return human_quantity(value, Unit::kSeconds); }

// "fedavg 12 s and 340 J": the trials of one strategy as it would make them.
std::string cost_of(const ComparedStrategy& row) {
  const ComparedTuning& tuning = *row.tuning;
  std::string text = row.name;
  if (tuning.total_s) text += " " + seconds(*tuning.total_s);
  if (tuning.energy_j) text += fmt::format(" and {:.3g} J", *tuning.energy_j);
  return text;
}

std::string note_on_edges(const Comparison& comparison) {
  std::vector<std::string> names;
  for (const ComparedStrategy& row : comparison.strategies)
    if (row.tuning && row.tuning->at_edge) names.push_back(row.name);
  if (names.empty()) return "";
  return fmt::format(
      "edge: the best value of {} lies at an end of the range, so that a better one may lie "
      "beyond; widen the range of --tune.",
      fmt::join(names, ", "));
}

std::string note_on_costs(const Comparison& comparison) {
  std::vector<std::string> costs;
  size_t trials = 0;
  double wall_s = 0, energy_j = 0;
  for (const ComparedStrategy& row : comparison.strategies) {
    if (!row.tuning || row.tuning->trials.empty()) continue;
    costs.push_back(cost_of(row));
    trials += row.tuning->trials.size();
    wall_s += row.tuning->wall_s.value_or(0);
    energy_j += row.tuning->energy_j.value_or(0);
  }
  return fmt::format(
      "What the search costs each, in time and energy of its own runs: {}. All {} trials: {:.3g} "
      "J; "
      "they took {} of processes here.",
      fmt::join(costs, ", "), trials, energy_j, seconds(wall_s));
}

}  // namespace

std::string tuning_cell(const ComparedStrategy& row) {
  if (!row.tuning) return "-";
  return fmt::format("{:g}{}", row.tuning->value, row.tuning->at_edge ? " edge" : "");
}

std::vector<std::string> notes_on_settings(const Comparison& comparison) {
  std::vector<std::string> notes;
  for (const ComparedStrategy& row : comparison.strategies)
    if (!row.remedy.empty())
      notes.push_back(fmt::format("{}: no better than guessing; {}", row.name, row.remedy));
  const ComparedTuning* const any = first_of(comparison);
  if (!any) return notes;
  std::vector<double> values;
  for (const ComparedStrategy& row : comparison.strategies)
    if (row.tuning && row.tuning->trials.size() > values.size()) {
      values.clear();
      for (const TuningTrial& trial : row.tuning->trials) values.push_back(trial.value);
    }
  notes.push_back(fmt::format(
      "{}: each strategy has its own best of {}, found by {} trial runs of the task with seed {}, "
      "which does not count. The best has the least time to the target or, where none reaches it, "
      "the best quality at the end on validation samples.",
      any->setting, fmt::join(values, ", "), values.size(), any->seed));
  if (std::string edges = note_on_edges(comparison); !edges.empty())
    notes.push_back(std::move(edges));
  notes.push_back(note_on_costs(comparison));
  return notes;
}

std::string tuned_entries(const Comparison& comparison, const std::string& command) {
  std::string text = fmt::format(
      "# Found on {} by\n#   {}\n# To keep it, copy what follows to the end of the job.\n",
      comparison.created.substr(0, 10), command);
  for (const ComparedStrategy& row : comparison.strategies) {
    if (!row.tuning) continue;
    const ComparedTuning& tuning = *row.tuning;
    std::string result = "no trial ended well";
    for (const TuningTrial& trial : tuning.trials)
      if (trial.value == tuning.value && ended_well(trial.status))
        result = trial.to_target_s ? fmt::format("target after {}", seconds(*trial.to_target_s))
                                   : fmt::format("target missed, {} {:.4g}", comparison.task.metric,
                                                 trial.quality.value_or(0));
    if (tuning.tried_by) result = "as " + *tuning.tried_by;
    const std::string note = result + (tuning.at_edge ? "; at an end of the range" : "");
    const std::string line = fmt::format("{} = {:g}  # {}\n", tuning.setting, tuning.value, note);
    if (is_variant(row.name))
      text += fmt::format("\n[[compare]]\nname = \"{}\"\n{}", row.name, line);
    else  // it has its place in the job already
      text += fmt::format("\n# {}: {}", row.name, line);
  }
  return text;
}

}  // namespace tutti

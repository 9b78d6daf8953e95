#include "testbed/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/described_json.h"
#include "core/units.h"
#include "fabric/cluster.h"
#include "jobs/run_status.h"
#include "testbed/question.h"
#include "testbed/table_layout.h"
#include "testbed/table_notes.h"
#include "testbed/tuning.h"

namespace tutti {
namespace {

using Best = TableColumn::Best;

constexpr const char* kPlan = "plan";

std::optional<double> mean_of(const OverSeeds& figure) {
  return figure ? figure->mean : std::nullopt;
}

std::string significant(double value) {
  if (value != 0 && (std::abs(value) >= 1e6 || std::abs(value) < 1e-3))
    return fmt::format("{:.2e}", value);
  const int digits = value == 0 ? 0 : static_cast<int>(std::floor(std::log10(std::abs(value))));
  return fmt::format("{:.{}f}", value, std::clamp(2 - digits, 0, 5));
}

std::string target_text(const ComparedStrategy& row) {
  const size_t seeds = row.seeds.size();
  const auto reached = static_cast<size_t>(row.reached.value_or(0));
  if (reached == 0) return ended_well(row.status) ? "missed" : "-";
  if (reached < seeds) return fmt::format("{} of {}", reached, seeds);
  if (!mean_of(row.to_target_s)) return "-";
  const double middle = *row.to_target_s->mean;
  std::string text = significant(middle);
  if (seeds > 1 && middle > 0)
    text += fmt::format(" +-{:.0f} %",
                        100 * (row.to_target_s->max - row.to_target_s->min) / 2 / middle);
  return text;
}

std::optional<double> wait_share(const ComparedStrategy& row) {
  const TimeSplit& split = row.time_split;
  double total = 0;
  for (const auto& part :
       {split.compute_s, split.communicate_s, split.aggregate_s, split.wait_s, split.other_s})
    total += part.value_or(0);
  return split.wait_s && total > 0 ? std::optional(*split.wait_s / total) : std::nullopt;
}

// Figures are of the seeds that ended well, so a row says how many did not.
std::string status_text(const ComparedStrategy& row) {
  if (ended_well(row.status)) return row.obtained;
  const auto same = std::count(row.statuses.begin(), row.statuses.end(), row.status);
  if (same == static_cast<std::ptrdiff_t>(row.statuses.size()) || same == 0) return row.status;
  return fmt::format("{} {} of {}", row.status, same, row.statuses.size());
}

TableColumn figure_column(const std::string& title, int importance,
                          OverSeeds ComparedFigures::*figure,
                          const std::function<std::string(double)>& format) {
  return {title, importance, Best::kLeast,
          [=](const ComparedStrategy& row) {
            const auto value = mean_of(row.*figure);
            return value ? format(*value) : std::string("-");
          },
          [=](const ComparedStrategy& row) { return mean_of(row.*figure); }};
}

TableColumn quality_column(const char* title, int importance, bool higher,
                           OverSeeds ComparedQuality::*quality) {
  return {title, importance, higher ? Best::kMost : Best::kLeast,
          [=](const ComparedStrategy& row) {
            const auto value = mean_of(row.quality.*quality);
            return value ? fmt::format("{:.4g}", *value) : std::string("-");
          },
          [=](const ComparedStrategy& row) { return mean_of(row.quality.*quality); }};
}

std::vector<TableColumn> columns_of(const Comparison& comparison) {
  const bool higher = comparison.task.higher_is_better;
  const bool target = comparison.task.target.has_value();
  using Figures = ComparedFigures;
  TableColumn time = figure_column(target ? "to target s" : "total s", 99,
                                   target ? &Figures::to_target_s : &Figures::total_s, significant);
  if (target) time.text = target_text;
  const auto bytes = [](double value) { return human_quantity(value, Unit::kBytes); };
  const auto wait_text = [](const ComparedStrategy& row) {
    const auto share = wait_share(row);
    return share ? fmt::format("{:.0f} %", 100 * *share) : std::string("-");
  };
  const std::string cost = "cost " + comparison.strategies.front().currency;
  std::vector<TableColumn> columns = {
      {"strategy", 100, Best::kNone, [](const ComparedStrategy& row) { return row.name; }, {}},
      {"n",
       35,
       Best::kNone,
       [](const ComparedStrategy& row) { return json_of(row.workers).dump(); },
       {}},
      quality_column("final test", 95, higher, &ComparedQuality::test_final),
      quality_column("final val", 78, higher, &ComparedQuality::validation_final),
      quality_column("best val", 77, higher, &ComparedQuality::validation_best),
      time,
      figure_column("converged s", 30, &Figures::converged_s, significant),
      figure_column("normed s", 40,
                    target ? &Figures::to_target_normalised_s : &Figures::total_normalised_s,
                    significant),
      figure_column("sent/node", 80, &Figures::bytes_per_node, bytes),
      {"wait", 70, Best::kLeast, wait_text, wait_share},
      figure_column("energy J", 75, &Figures::energy_j, significant),
      figure_column("CO2e g", 45, &Figures::co2e_g, significant),
      figure_column(cost, 50, &Figures::cost, significant),
      {"obtained", 90, Best::kNone, status_text, {}},
      {kPlan, 20, Best::kNone, [](const ComparedStrategy& row) { return row.plan; }, {}}};
  for (const ComparedStrategy& row : comparison.strategies)
    if (row.tuning && columns[1].title != row.tuning->setting)
      columns.insert(columns.begin() + 1, {row.tuning->setting, 94, Best::kNone, tuning_cell, {}});
  return columns;
}

// Those that reached the target first, by time; then the rest by quality.
TableRows sorted_rows(const Comparison& comparison) {
  TableRows rows;
  for (const ComparedStrategy& row : comparison.strategies) rows.push_back(&row);
  const bool higher = comparison.task.higher_is_better;
  const bool target = comparison.task.target.has_value();
  const auto key = [&](const ComparedStrategy& row) {
    const auto time = mean_of(target ? row.to_target_s : row.total_s);
    auto quality = mean_of(row.quality.test_final);
    if (!quality) quality = mean_of(row.quality.validation_final);
    const int rank = !ended_well(row.status) ? 2 : time ? 0 : 1;
    return std::tuple(rank, time.value_or(INFINITY),
                      quality ? (higher ? -*quality : *quality) : INFINITY);
  };
  std::stable_sort(
      rows.begin(), rows.end(),
      [&](const ComparedStrategy* a, const ComparedStrategy* b) { return key(*a) < key(*b); });
  return rows;
}

std::string heading(const ComparedTask& task) {
  std::string seeds;
  for (const uint64_t seed : task.seeds)
    seeds += fmt::format("{}{}", seeds.empty() ? "" : ", ", seed);
  return fmt::format(
      "{}, batch {}, {} epochs, {}, {} {}", task.metric, json_of(task.global_batch).dump(),
      json_of(task.epochs).dump(),
      task.target ? fmt::format("target {} {:g}", task.metric, *task.target) : "no target",
      task.seeds.size() == 1 ? "seed" : "seeds", seeds);
}

std::string grouped(const TableRows& rows, const TableLayout& layout, const std::string& by) {
  const auto group_of = [&](const ComparedStrategy& row) {
    const std::string place = json_of(row.taxonomy).value(by, "");
    return place.empty() ? std::string("?") : place;
  };
  std::vector<std::string> groups;
  for (const ComparedStrategy* row : rows)
    if (std::find(groups.begin(), groups.end(), group_of(*row)) == groups.end())
      groups.push_back(group_of(*row));
  std::string text;
  for (const std::string& group : groups) {
    text += fmt::format("-- {}: {}\n", by, group);
    for (const ComparedStrategy* row : rows)
      if (group_of(*row) == group) text += layout.line(*row);
  }
  return text;
}

// A run that failed early did not say which clock it had; its fabric does.
std::string clock_of(const ComparedStrategy& row) {
  if (!row.obtained.empty()) return row.obtained;
  const bool simulated = row.fabric.empty() || says(row.fabric, FabricKind::kVirtual);
  return std::string(word_of(simulated ? Obtained::kSimulated : Obtained::kMeasured));
}

}  // namespace

std::string comparison_table(const Comparison& comparison, const TableOptions& options) {
  const TableRows all = sorted_rows(comparison);
  std::vector<std::string> clocks;
  for (const ComparedStrategy* row : all)
    if (std::find(clocks.begin(), clocks.end(), clock_of(*row)) == clocks.end())
      clocks.push_back(clock_of(*row));
  std::string text = wrapped(question_of(comparison), options.columns);
  text += wrapped(comparison.title, options.columns);
  text += wrapped(heading(comparison.task), options.columns);
  bool plans_shown = true;
  for (const std::string& clock : clocks) {
    TableRows rows;
    for (const ComparedStrategy* row : all)
      if (clock_of(*row) == clock) rows.push_back(row);
    const TableLayout layout(columns_of(comparison), rows, options);
    plans_shown = plans_shown && layout.shows(kPlan);
    text += clocks.size() > 1 ? fmt::format("\n{}:\n", clock) : "\n";
    text += layout.head();
    if (options.group.empty())
      for (const ComparedStrategy* row : rows) text += layout.line(*row);
    else
      text += grouped(rows, layout, options.group);
  }
  text += "\n" + table_notes(comparison, all, plans_shown, options);
  for (const std::string& note : notes_on_settings(comparison))
    text += wrapped(note, options.columns);
  return text + wrapped(fmt::format("{} marks the best{}. Figures are defined in docs/compare.md.",
                                    options.bold ? "Bold" : "*",
                                    clocks.size() > 1 ? " of each table" : ""),
                        options.columns);
}

}  // namespace tutti

#include "testbed/table_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/described_json.h"
#include "core/printable.h"
#include "core/recorded_word.h"
#include "fabric/cluster.h"
#include "jobs/run_status.h"
#include "strategies/plan.h"
#include "testbed/refusals.h"
#include "testbed/row.h"

namespace tutti {
namespace {

// Names the seed that ended so, where others ended otherwise.
std::string seed_of_status(const ComparedStrategy& row) {
  const auto found = std::find(row.statuses.begin(), row.statuses.end(), row.status);
  const auto index = static_cast<size_t>(found - row.statuses.begin());
  if (row.seeds.size() < 2 || index >= row.seeds.size()) return "";
  return fmt::format(", seed {}", row.seeds[index]);
}

// Lists what each strategy planned for the cluster, and which runs are identical.
std::string plans(const TableRows& rows, bool in_table, size_t columns) {
  std::string text;
  std::map<std::string, std::string> by_plan;
  for (const ComparedStrategy* row : rows) {
    if (!row->plan.empty())
      by_plan[row->plan] += (by_plan[row->plan].empty() ? "" : ", ") + row->name;
    if (row->same_run_as)
      text +=
          wrapped(fmt::format("{} took exactly the run of {}: {}.", row->name, *row->same_run_as,
                              says(row->taxonomy.timing, Timing::kBounded)
                                  ? "its bound never held anybody back"
                                  : "what they differ in did not matter here"),
                  columns);
  }
  if (in_table) return text;
  for (const auto& [plan, names] : by_plan)
    text += wrapped(fmt::format("plan of {}: {}", names, plan), columns);
  return text;
}

// Names the rows that leave machines of the cluster idle: their times and prices are of fewer.
// The baseline does so by its definition. Where runs were put together that have no cluster in
// common, the one that uses most stands for it.
std::string idle_machines(const Comparison& comparison, const TableRows& rows, size_t columns) {
  auto most = static_cast<double>(comparison.cluster.machines.value_or(0));
  for (const ComparedStrategy* row : rows)
    if (!comparison.cluster.machines && says(row->fabric, FabricKind::kVirtual))
      most = std::max(most, row->machines.value_or(0));
  std::map<double, std::string> fewer;
  for (const ComparedStrategy* row : rows) {
    if (!says(row->fabric, FabricKind::kVirtual) || is_baseline(row->kind) ||
        row->machines.value_or(most) >= most)
      continue;
    std::string& names = fewer[*row->machines];
    names += (names.empty() ? "" : ", ") + row->name;
  }
  std::string text;
  for (const auto& [machines, names] : fewer)
    text += wrapped(
        fmt::format("on {:g} of {:g} machines: {}; the others stay idle", machines, most, names),
        columns);
  return text;
}

std::string ends(const TableRows& rows, size_t columns) {
  std::string text;
  for (const ComparedStrategy* row : rows) {
    if (!ended_well(row->status))
      text += wrapped(
          fmt::format("{}{}: {}: {}", row->name, seed_of_status(*row), row->status, row->error),
          columns);
    for (const std::string& missing : row->missing)
      text += wrapped(fmt::format("{}: {}", row->name, missing), columns);
  }
  return text;
}

std::string shared_curves(const TableRows& rows, size_t columns) {
  std::map<std::string, std::string> sharing;
  for (const ComparedStrategy* row : rows)
    if (row->shared_curve_of) {
      std::string& names = sharing[*row->shared_curve_of];
      names += (names.empty() ? "" : ", ") + row->name;
    }
  std::string text;
  for (const auto& [source, names] : sharing)
    text +=
        wrapped(fmt::format("Learning curve computed once, by {}, and shared by {}: they compute "
                            "the same parameters. Times and bytes are each one's own.",
                            source, names),
                columns);
  return text;
}

std::string not_possible_here(const std::vector<Refusal>& refusals, const TableOptions& options) {
  std::string text;
  if (options.verbose) {
    for (const Refusal& refused : refusals)
      text += wrapped(fmt::format("{}: not possible here: {}", refused.name, refused.reason),
                      options.columns);
    return text;
  }
  text = refusal_lines(refusals, options.columns);
  return text.empty() ? "" : "not possible here (--verbose says all of it):\n" + text;
}

std::string definitions(const Comparison& comparison, size_t columns) {
  std::string text;
  for (const char* key : {"quality", "time_to_target", "convergence", "normalised"})
    if (const auto found = comparison.definitions.find(key); found != comparison.definitions.end())
      text += wrapped(fmt::format("{}: {}", key, found->second), columns);
  return text;
}

}  // namespace

std::string table_notes(const Comparison& comparison, const TableRows& rows, bool plans_in_table,
                        const TableOptions& options) {
  const size_t columns = options.columns;
  std::string text = plans(rows, plans_in_table, columns);
  text += idle_machines(comparison, rows, columns) + ends(rows, columns);
  text += not_possible_here(comparison.not_possible, options) + shared_curves(rows, columns);
  if (const auto tasks = comparison.definitions.find("tasks");
      tasks != comparison.definitions.end())
    text += wrapped("tasks: " + tasks->second, columns);
  return options.verbose ? text + definitions(comparison, columns) : text;
}

}  // namespace tutti

#include "testbed/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "core/described_json.h"
#include "core/printable.h"
#include "core/quality.h"
#include "core/units.h"
#include "testbed/tuning.h"

namespace tutti {
namespace {

enum class Best { kNone, kLeast, kMost };

constexpr const char* kPlan = "plan";

using Rows = std::vector<const ComparedStrategy*>;

struct Column {
  std::string title;
  int importance;  // the least important are left out first
  Best best;
  std::function<std::string(const ComparedStrategy&)> text;
  std::function<std::optional<double>(const ComparedStrategy&)> value;  // what is compared
};

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
  if (reached == 0) return row.status == "done" ? "missed" : "-";
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
  if (row.status == "done") return row.obtained;
  const auto same = std::count(row.statuses.begin(), row.statuses.end(), row.status);
  if (same == static_cast<std::ptrdiff_t>(row.statuses.size()) || same == 0) return row.status;
  return fmt::format("{} {} of {}", row.status, same, row.statuses.size());
}

// Names the seed that ended so, where others ended otherwise.
std::string seed_of_status(const ComparedStrategy& row) {
  const auto found = std::find(row.statuses.begin(), row.statuses.end(), row.status);
  const auto index = static_cast<size_t>(found - row.statuses.begin());
  if (row.seeds.size() < 2 || index >= row.seeds.size()) return "";
  return fmt::format(", seed {}", row.seeds[index]);
}

Column figure_column(const std::string& title, int importance, OverSeeds ComparedFigures::*figure,
                     const std::function<std::string(double)>& format) {
  return {title, importance, Best::kLeast,
          [=](const ComparedStrategy& row) {
            const auto value = mean_of(row.*figure);
            return value ? format(*value) : std::string("-");
          },
          [=](const ComparedStrategy& row) { return mean_of(row.*figure); }};
}

Column quality_column(const char* title, int importance, bool higher,
                      OverSeeds ComparedQuality::*quality) {
  return {title, importance, higher ? Best::kMost : Best::kLeast,
          [=](const ComparedStrategy& row) {
            const auto value = mean_of(row.quality.*quality);
            return value ? fmt::format("{:.4g}", *value) : std::string("-");
          },
          [=](const ComparedStrategy& row) { return mean_of(row.quality.*quality); }};
}

std::vector<Column> columns_of(const Comparison& comparison) {
  const bool higher = comparison.task.higher_is_better;
  const bool target = comparison.task.target.has_value();
  using Figures = ComparedFigures;
  Column time = figure_column(target ? "to target s" : "total s", 99,
                              target ? &Figures::to_target_s : &Figures::total_s, significant);
  if (target) time.text = target_text;
  const auto bytes = [](double value) { return human_quantity(value, Unit::kBytes); };
  const auto wait_text = [](const ComparedStrategy& row) {
    const auto share = wait_share(row);
    return share ? fmt::format("{:.0f} %", 100 * *share) : std::string("-");
  };
  const std::string cost = "cost " + comparison.strategies.front().currency;
  return {{"strategy", 100, Best::kNone, [](const ComparedStrategy& row) { return row.name; }, {}},
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
}

// Those that reached the target first, by time; then the rest by quality.
Rows sorted_rows(const Comparison& comparison) {
  Rows rows;
  for (const ComparedStrategy& row : comparison.strategies) rows.push_back(&row);
  const bool higher = comparison.task.higher_is_better;
  const bool target = comparison.task.target.has_value();
  const auto key = [&](const ComparedStrategy& row) {
    const auto time = mean_of(target ? row.to_target_s : row.total_s);
    auto quality = mean_of(row.quality.test_final);
    if (!quality) quality = mean_of(row.quality.validation_final);
    const int rank = row.status != "done" ? 2 : time ? 0 : 1;
    return std::tuple(rank, time.value_or(INFINITY),
                      quality ? (higher ? -*quality : *quality) : INFINITY);
  };
  std::stable_sort(
      rows.begin(), rows.end(),
      [&](const ComparedStrategy* a, const ComparedStrategy* b) { return key(*a) < key(*b); });
  return rows;
}

size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

class TableLayout {
 public:
  TableLayout(std::vector<Column> columns, const Rows& rows, const TableOptions& options)
      : columns_(std::move(columns)), options_(options) {
    for (const Column& column : columns_) {
      std::map<std::string, Extreme> best;
      for (const ComparedStrategy* row : rows)
        if (const auto value = value_of(column, *row)) {
          Extreme& extreme = best[row->obtained];
          if (extreme.rows++ == 0 || is_better(*value, extreme.value, column.best == Best::kMost))
            extreme.value = *value;
        }
      best_.push_back(std::move(best));
    }
    for (size_t i = 0; i < columns_.size(); ++i) {
      size_t width = columns_[i].title.size();
      for (const ComparedStrategy* row : rows)
        width = std::max(width, width_of(cell(i, *row)) + (!options.bold && is_best(i, *row)));
      widths_.push_back(i == 0 ? std::min<size_t>(width, 24) : width);
    }
    if (total_width() > options.columns) gap_ = 1;
    while (total_width() > options.columns && columns_.size() > 2) drop_least_important();
  }

  bool shows(const std::string& title) const {
    return std::any_of(columns_.begin(), columns_.end(),
                       [&](const Column& column) { return column.title == title; });
  }
  std::string head() const {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) line += padded(i, columns_[i].title, false);
    return trimmed(line) + "\n";
  }
  std::string line(const ComparedStrategy& row) const {
    std::string text;
    for (size_t i = 0; i < columns_.size(); ++i) text += padded(i, cell(i, row), is_best(i, row));
    text = trimmed(text);
    const bool red = options_.bold && row.status != "done";
    return red ? "\033[31m" + text + "\033[0m\n" : text + "\n";
  }

 private:
  struct Extreme {
    double value = 0;
    size_t rows = 0;
  };
  static std::string trimmed(std::string text) {
    while (!text.empty() && text.back() == ' ') text.pop_back();
    return text;
  }
  // Rows that ended early have less of everything: that is no merit.
  static std::optional<double> value_of(const Column& column, const ComparedStrategy& row) {
    if (!column.value || row.status != "done") return std::nullopt;
    return column.value(row);
  }
  bool is_best(size_t i, const ComparedStrategy& row) const {
    const auto value = value_of(columns_[i], row);
    if (!value) return false;
    const Extreme& extreme = best_[i].at(row.obtained);
    return extreme.rows > 1 && *value == extreme.value;  // alone one is not the best
  }
  std::string cell(size_t i, const ComparedStrategy& row) const {
    return printable(columns_[i].text(row));
  }
  size_t total_width() const {
    size_t width = 0;
    for (const size_t w : widths_) width += w + gap_;
    return width - gap_;
  }
  void drop_least_important() {
    const auto least = std::min_element(
        columns_.begin(), columns_.end(),
        [](const Column& a, const Column& b) { return a.importance < b.importance; });
    const auto index = least - columns_.begin();
    columns_.erase(least);
    widths_.erase(widths_.begin() + index);
    best_.erase(best_.begin() + index);
  }
  // The first and the last column to the left, figures to the right.
  std::string padded(size_t i, std::string text, bool best) const {
    if (i == 0 && text.size() > widths_[0]) text = text.substr(0, widths_[0] - 1) + "~";
    if (best && !options_.bold) text += "*";
    const std::string space(widths_[i] - std::min(widths_[i], width_of(text)), ' ');
    if (best && options_.bold) text = "\033[1m" + text + "\033[0m";
    const bool last = i + 1 == columns_.size();
    return (i == 0 || last ? text + space : space + text) + std::string(last ? 0 : gap_, ' ');
  }

  std::vector<Column> columns_;
  TableOptions options_;
  std::vector<std::map<std::string, Extreme>> best_;  // of each column, by how it was obtained
  std::vector<size_t> widths_;
  size_t gap_ = 2;  // between columns
};

// Breaks a text into lines of at most `columns`, those after the first indented.
std::string wrapped(const std::string& raw, size_t columns) {
  const std::string text = printable(raw);
  std::string result, line;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!line.empty() && line.size() + 1 + word.size() > columns) {
      result += line + "\n";
      line = "  " + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
    at = end + 1;
  }
  return result + line + "\n";
}

// Lists what each strategy planned for the cluster, and which runs are identical.
std::string plans(const Rows& rows, bool in_table, size_t columns) {
  std::string text;
  std::map<std::string, std::string> by_plan;
  for (const ComparedStrategy* row : rows) {
    if (!row->plan.empty())
      by_plan[row->plan] += (by_plan[row->plan].empty() ? "" : ", ") + row->name;
    if (row->same_run_as)
      text +=
          wrapped(fmt::format("{} took exactly the run of {}: {}.", row->name, *row->same_run_as,
                              row->taxonomy.timing == "bounded"
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
// The baseline does so by its definition.
std::string idle_machines(const Rows& rows, size_t columns) {
  double most = 0;
  for (const ComparedStrategy* row : rows)
    if (row->fabric == "virtual") most = std::max(most, row->machines.value_or(0));
  std::map<double, std::string> fewer;
  for (const ComparedStrategy* row : rows) {
    if (row->fabric != "virtual" || row->kind == "solo" || row->machines.value_or(most) >= most)
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

std::string notes(const Comparison& comparison, const Rows& rows, size_t columns) {
  std::string text = idle_machines(rows, columns);
  std::map<std::string, std::string> sharing;
  for (const ComparedStrategy* row : rows) {
    if (row->status != "done")
      text += wrapped(
          fmt::format("{}{}: {}: {}", row->name, seed_of_status(*row), row->status, row->error),
          columns);
    for (const std::string& missing : row->missing)
      text += wrapped(fmt::format("{}: {}", row->name, missing), columns);
    if (row->shared_curve_of) {
      std::string& names = sharing[*row->shared_curve_of];
      names += (names.empty() ? "" : ", ") + row->name;
    }
  }
  for (const Refusal& refused : comparison.not_possible)
    text +=
        wrapped(fmt::format("{}: not possible here: {}", refused.name, refused.reason), columns);
  for (const auto& [source, names] : sharing)
    text +=
        wrapped(fmt::format("Learning curve computed once, by {}, and shared by {}: they compute "
                            "the same parameters. Times and bytes are each one's own.",
                            source, names),
                columns);
  return text;
}

std::string heading(const ComparedTask& task) {
  return fmt::format(
      "{}, batch {}, {} epochs, {}, seeds {}", task.metric, json_of(task.global_batch).dump(),
      json_of(task.epochs).dump(),
      task.target ? fmt::format("target {} {:g}", task.metric, *task.target) : "no target",
      json_of(task.seeds).dump());
}

std::string grouped(const Rows& rows, const TableLayout& layout, const std::string& by) {
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

}  // namespace

std::string comparison_table(const Comparison& comparison, const TableOptions& options) {
  const Rows rows = sorted_rows(comparison);
  std::vector<Column> columns = columns_of(comparison);
  for (const ComparedStrategy* row : rows)
    if (row->tuning && columns[1].title != row->tuning->setting)
      columns.insert(columns.begin() + 1, {row->tuning->setting, 94, Best::kNone, tuning_cell, {}});
  const TableLayout layout(std::move(columns), rows, options);
  std::string text = wrapped(comparison.title, options.columns);
  text += wrapped(heading(comparison.task), options.columns);
  text += "\n" + layout.head();
  if (options.group.empty())
    for (const ComparedStrategy* row : rows) text += layout.line(*row);
  else
    text += grouped(rows, layout, options.group);
  text += "\n" + plans(rows, layout.shows(kPlan), options.columns);
  text += notes(comparison, rows, options.columns);
  for (const std::string& note : notes_on_settings(comparison))
    text += wrapped(note, options.columns);
  for (const char* key : {"tasks", "quality", "time_to_target", "convergence", "normalised"})
    if (const auto found = comparison.definitions.find(key); found != comparison.definitions.end())
      text += wrapped(fmt::format("{}: {}", key, found->second), options.columns);
  return text + wrapped(fmt::format("{} marks the best. The rest is defined in docs/compare.md.",
                                    options.bold ? "Bold" : "*"),
                        options.columns);
}

}  // namespace tutti

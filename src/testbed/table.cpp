#include "testbed/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "core/units.h"
#include "testbed/row.h"

namespace tutti {
namespace {

using nlohmann::json;

enum class Best { kNone, kLeast, kMost };

constexpr const char* kPlan = "plan";

struct Column {
  std::string title;
  int importance;  // the least important are left out first
  Best best;
  std::function<std::string(const json&)> text;
  std::function<std::optional<double>(const json&)> value;  // what is compared
};

std::optional<double> mean(const json& row, const std::string& pointer) {
  return number_at(row, pointer + "/mean");
}

std::string significant(double value) {
  if (value != 0 && (std::abs(value) >= 1e6 || std::abs(value) < 1e-3))
    return fmt::format("{:.2e}", value);
  const int digits = value == 0 ? 0 : static_cast<int>(std::floor(std::log10(std::abs(value))));
  return fmt::format("{:.{}f}", value, std::clamp(2 - digits, 0, 5));
}

std::string target_text(const json& row) {
  const size_t seeds = row["seeds"].size(), reached = row["reached"].get<size_t>();
  if (reached == 0) return row["status"] == "done" ? "missed" : "-";
  if (reached < seeds) return fmt::format("{} of {}", reached, seeds);
  const double low = *number_at(row, "/to_target_s/min");
  const double high = *number_at(row, "/to_target_s/max");
  const double middle = *mean(row, "/to_target_s");
  std::string text = significant(middle);
  if (seeds > 1 && middle > 0) text += fmt::format(" +-{:.0f} %", 100 * (high - low) / 2 / middle);
  return text;
}

std::optional<double> wait_share(const json& row) {
  const auto wait = number_at(row, "/time_split/wait_s");
  double total = 0;
  for (const char* phase : {"compute_s", "communicate_s", "aggregate_s", "wait_s", "other_s"})
    total += number_at(row, std::string("/time_split/") + phase).value_or(0);
  return wait && total > 0 ? std::optional(*wait / total) : std::nullopt;
}

std::string status_text(const json& row) {
  return row["status"] == "done" ? row["obtained"].get<std::string>()
                                 : row["status"].get<std::string>();
}

std::string plan_of(const json& row) {
  return row.contains(kPlan) && row[kPlan].is_string() ? row[kPlan].get<std::string>() : "";
}

std::vector<Column> columns_of(const json& comparison) {
  const auto plain = [](const std::string& pointer,
                        const std::function<std::string(double)>& format) {
    return [=](const json& row) {
      const auto value = mean(row, pointer);
      return value ? format(*value) : std::string("-");
    };
  };
  const auto of = [](const std::string& pointer) {
    return [=](const json& row) { return mean(row, pointer); };
  };
  const auto quantity = [](Unit unit) {
    return [=](double value) { return human_quantity(value, unit); };
  };
  const bool higher = comparison["task"].value("higher_is_better", true);
  const bool target = !comparison["task"]["target"].is_null();
  const std::string time = target ? "/to_target_s" : "/total_s";
  const std::string normalised = target ? "/to_target_normalised_s" : "/total_normalised_s";
  const auto quality = [&](const char* title, int importance, const char* pointer) {
    return Column{title, importance, higher ? Best::kMost : Best::kLeast,
                  plain(pointer, [](double v) { return fmt::format("{:.4g}", v); }), of(pointer)};
  };
  const json first = comparison["strategies"][0];
  return {{"strategy",
           100,
           Best::kNone,
           [](const json& row) { return row["name"].get<std::string>(); },
           {}},
          {"n", 35, Best::kNone, [](const json& row) { return row["workers"].dump(); }, {}},
          quality("final test", 95, "/quality/test_final"),
          quality("final val", 78, "/quality/validation_final"),
          quality("best val", 77, "/quality/validation_best"),
          {target ? "to target s" : "total s", 99, Best::kLeast,
           target ? std::function<std::string(const json&)>(target_text) : plain(time, significant),
           of(time)},
          {"converged s", 30, Best::kLeast, plain("/converged_s", significant), of("/converged_s")},
          {"normed s", 40, Best::kLeast, plain(normalised, significant), of(normalised)},
          {"sent/node", 80, Best::kLeast, plain("/bytes_per_node", quantity(Unit::kBytes)),
           of("/bytes_per_node")},
          {"wait", 70, Best::kLeast,
           [](const json& row) {
             const auto share = wait_share(row);
             return share ? fmt::format("{:.0f} %", 100 * *share) : std::string("-");
           },
           wait_share},
          {"energy J", 75, Best::kLeast, plain("/energy_j", significant), of("/energy_j")},
          {"CO2e g", 45, Best::kLeast, plain("/co2e_g", significant), of("/co2e_g")},
          {"cost " + first.value("currency", ""), 50, Best::kLeast, plain("/cost", significant),
           of("/cost")},
          {"obtained", 90, Best::kNone, status_text, {}},
          {kPlan, 20, Best::kNone, plan_of, {}}};
}

// Those that reached the target first, by time; then the rest by quality.
std::vector<json> sorted_rows(const json& comparison) {
  std::vector<json> rows = comparison["strategies"];
  const bool higher = comparison["task"].value("higher_is_better", true);
  const bool target = !comparison["task"]["target"].is_null();
  const auto key = [&](const json& row) {
    const auto time = mean(row, target ? "/to_target_s" : "/total_s");
    auto quality = mean(row, "/quality/test_final");
    if (!quality) quality = mean(row, "/quality/validation_final");
    const int rank = row["status"] != "done" ? 2 : time ? 0 : 1;
    return std::tuple(rank, time.value_or(INFINITY),
                      quality ? (higher ? -*quality : *quality) : INFINITY);
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const json& a, const json& b) { return key(a) < key(b); });
  return rows;
}

size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

class TableLayout {
 public:
  TableLayout(std::vector<Column> columns, const std::vector<json>& rows,
              const TableOptions& options)
      : columns_(std::move(columns)), options_(options) {
    for (const Column& column : columns_) {
      std::map<std::string, Extreme> best;
      for (const json& row : rows)
        if (const auto value = value_of(column, row)) {
          Extreme& extreme = best[row["obtained"]];
          if (extreme.rows++ == 0 ||
              (column.best == Best::kMost ? *value > extreme.value : *value < extreme.value))
            extreme.value = *value;
        }
      best_.push_back(std::move(best));
    }
    for (size_t i = 0; i < columns_.size(); ++i) {
      size_t width = columns_[i].title.size();
      for (const json& row : rows)
        width = std::max(width, width_of(cell(i, row)) + (!options.bold && is_best(i, row)));
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
  std::string line(const json& row) const {
    std::string text;
    for (size_t i = 0; i < columns_.size(); ++i) text += padded(i, cell(i, row), is_best(i, row));
    text = trimmed(text);
    const bool red = options_.bold && row["status"] != "done";
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
  static std::optional<double> value_of(const Column& column, const json& row) {
    if (!column.value || row["status"] != "done") return std::nullopt;
    return column.value(row);
  }
  bool is_best(size_t i, const json& row) const {
    const auto value = value_of(columns_[i], row);
    if (!value) return false;
    const Extreme& extreme = best_[i].at(row["obtained"]);
    return extreme.rows > 1 && *value == extreme.value;  // alone one is not the best
  }
  std::string cell(size_t i, const json& row) const { return columns_[i].text(row); }
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
std::string wrapped(const std::string& text, size_t columns) {
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
std::string plans(const std::vector<json>& rows, bool in_table, size_t columns) {
  std::string text;
  std::map<std::string, std::string> by_plan;
  for (const json& row : rows) {
    const std::string name = row["name"], plan = plan_of(row);
    if (!plan.empty()) by_plan[plan] += (by_plan[plan].empty() ? "" : ", ") + name;
    if (row.contains("same_run_as") && row["same_run_as"].is_string())
      text += wrapped(fmt::format("{} took exactly the run of {}: {}.", name,
                                  row["same_run_as"].get<std::string>(),
                                  row["taxonomy"].value("timing", "") == "bounded"
                                      ? "its bound never held anybody back"
                                      : "what they differ in did not matter here"),
                      columns);
  }
  if (in_table) return text;
  for (const auto& [plan, names] : by_plan)
    text += wrapped(fmt::format("plan of {}: {}", names, plan), columns);
  return text;
}

std::string notes(const json& comparison, const std::vector<json>& rows, size_t columns) {
  std::string text;
  std::map<std::string, std::string> sharing;
  for (const json& row : rows) {
    const std::string name = row["name"];
    if (row["status"] != "done")
      text += wrapped(fmt::format("{}: {}: {}", name, row["status"].get<std::string>(),
                                  row["error"].get<std::string>()),
                      columns);
    for (const json& missing : row.value("missing", json::array()))
      text += wrapped(fmt::format("{}: {}", name, missing.get<std::string>()), columns);
    if (row["shared_curve_of"].is_string()) {
      std::string& names = sharing[row["shared_curve_of"]];
      names += (names.empty() ? "" : ", ") + name;
    }
  }
  for (const json& refused : comparison["not_possible"])
    text += wrapped(fmt::format("{}: not possible here: {}", refused["name"].get<std::string>(),
                                refused["reason"].get<std::string>()),
                    columns);
  for (const auto& [source, names] : sharing)
    text +=
        wrapped(fmt::format("Learning curve computed once, by {}, and shared by {}: they compute "
                            "the same parameters. Times and bytes are each one's own.",
                            source, names),
                columns);
  return text;
}

}  // namespace

std::string comparison_table(const json& comparison, const TableOptions& options) {
  const std::vector<json> rows = sorted_rows(comparison);
  const TableLayout layout(columns_of(comparison), rows, options);
  const json& task = comparison["task"];
  std::string text = wrapped(comparison["title"].get<std::string>(), options.columns);
  text += wrapped(
      fmt::format("{}, batch {}, {} epochs, {}, seeds {}", task.value("metric", "quality"),
                  task["global_batch"].dump(), task["epochs"].dump(),
                  task["target"].is_null() ? "no target"
                                           : fmt::format("target {} {:g}", task.value("metric", ""),
                                                         task["target"].get<double>()),
                  task["seeds"].dump()),
      options.columns);
  text += "\n" + layout.head();
  if (options.group.empty()) {
    for (const json& row : rows) text += layout.line(row);
  } else {
    std::vector<std::string> groups;
    const auto group_of = [&](const json& row) {
      return row["taxonomy"].value(options.group, std::string("?"));
    };
    for (const json& row : rows)
      if (std::find(groups.begin(), groups.end(), group_of(row)) == groups.end())
        groups.push_back(group_of(row));
    for (const std::string& group : groups) {
      text += fmt::format("-- {}: {}\n", options.group, group);
      for (const json& row : rows)
        if (group_of(row) == group) text += layout.line(row);
    }
  }
  text += "\n" + plans(rows, layout.shows(kPlan), options.columns);
  text += notes(comparison, rows, options.columns);
  const json& definitions = comparison["definitions"];
  for (const char* key : {"tasks", "quality", "time_to_target", "convergence", "normalised"})
    if (definitions.contains(key))
      text += wrapped(fmt::format("{}: {}", key, definitions.value(key, "")), options.columns);
  return text + wrapped(fmt::format("{} marks the best. The rest is defined in docs/compare.md.",
                                    options.bold ? "Bold" : "*"),
                        options.columns);
}

}  // namespace tutti

// The two tables of a survey, for a terminal and as a page.
#include <fmt/format.h>

#include <algorithm>

#include "core/described_json.h"
#include "core/units.h"
#include "jobs/run_status.h"
#include "testbed/report.h"
#include "testbed/survey.h"

namespace tutti {
namespace {

// Every architecture that some task has a cell for or refuses, in the order of their first
// appearance.
std::vector<std::string> architectures(const Survey& survey) {
  std::vector<std::string> names;
  const auto add = [&](const auto& entries) {
    if (!entries) return;
    for (const auto& [name, entry] : *entries)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const SurveyedTask& task : survey.tasks) add(task.cells);
  for (const SurveyedTask& task : survey.tasks) add(task.refused);
  return names;
}

std::string short_name(const std::string& task) { return task.substr(task.find('-') + 1); }

std::string quality_text(const SurveyCell& cell) {
  if (!cell.quality) return ended_well(cell.status) ? "-" : cell.status;
  return fmt::format("{:.4g} {}", *cell.quality, cell.quality_mark);
}

std::string time_text(const SurveyCell& cell) {
  if (!cell.time_s) return ended_well(cell.status) ? "missed -" : cell.status;
  return fmt::format("{} {}", human_quantity(*cell.time_s, Unit::kSeconds), cell.time_mark);
}

using CellText = std::string (*)(const SurveyCell&);

// Null where there is none.
const SurveyCell* cell_of(const SurveyedTask& task, const std::string& name) {
  if (!task.cells) return nullptr;
  const auto found = task.cells->find(name);
  return found == task.cells->end() ? nullptr : &found->second;
}

// Why there is no cell; empty when nobody asked.
std::string refusal(const SurveyedTask& task, const std::string& name) {
  if (!task.refused) return "";
  const auto found = task.refused->find(name);
  return found == task.refused->end() ? "" : found->second;
}

// As wide as the longest of a column; names are never cut.
size_t widest(const std::vector<std::string>& texts) {
  size_t width = 0;
  for (const std::string& text : texts) width = std::max(width, text.size());
  return width;
}

std::string table(const Survey& survey, const std::vector<std::string>& names, CellText text,
                  size_t columns) {
  std::vector<std::vector<std::string>> cells;  // of each task, its name first
  std::vector<size_t> widths;
  for (const SurveyedTask& task : survey.tasks) {
    if (!task.cells) continue;
    std::vector<std::string>& column = cells.emplace_back();
    column.push_back(short_name(task.name));
    for (const std::string& name : names) {
      const SurveyCell* cell = cell_of(task, name);
      column.push_back(cell ? text(*cell) : refusal(task, name).empty() ? "" : "refused");
    }
    widths.push_back(widest(column));
  }
  const size_t left = widest(names);
  std::string result;
  for (size_t first = 0, last = 0; first < cells.size(); first = last) {
    size_t width = left;
    do width += 1 + widths[last++];
    while (last < cells.size() && width + 1 + widths[last] <= columns);
    for (size_t row = 0; row <= names.size(); ++row) {
      result += fmt::format("{:<{}}", row == 0 ? "" : names[row - 1], left);
      for (size_t i = first; i < last; ++i)
        result += fmt::format(" {:>{}}", cells[i][row], widths[i]);
      result += "\n";
    }
  }
  return result;
}

}  // namespace

std::string survey_tables(const Survey& survey, size_t columns) {
  const std::vector<std::string> names = architectures(survey);
  std::string text = fmt::format("Model quality on {}\n", survey.cluster);
  text += table(survey, names, quality_text, columns);
  text += "\nTraining time (to target)\n" + table(survey, names, time_text, columns) + "\n";
  text += "quality: " + survey.rules.quality + "\n";
  text += "time: " + survey.rules.time + "\n";
  for (const SurveyedTask& task : survey.tasks)
    if (!task.skipped.empty()) text += fmt::format("{} is left out: {}\n", task.name, task.skipped);
  if (survey.spent) text += fmt::format("consumed {}\n", spent_text(*survey.spent));
  return text;
}

std::string survey_html(const Survey& survey) {
  return page_with(kSurveyTemplate, kSurveyDataMark, json_of(survey));
}

}  // namespace tutti

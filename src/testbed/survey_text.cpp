// The two tables of a survey, for a terminal and as a page.
#include <fmt/format.h>

#include <algorithm>

#include "core/units.h"
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
  if (!cell.quality) return cell.status == "done" ? "-" : cell.status;
  return fmt::format("{:.4g} {}", *cell.quality, cell.quality_mark);
}

std::string time_text(const SurveyCell& cell) {
  if (!cell.time_s) return cell.status == "done" ? "missed -" : cell.status;
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

constexpr size_t kTasksAcross = 6;  // within 100 columns

std::string table(const Survey& survey, const std::vector<std::string>& names, CellText text) {
  std::vector<const SurveyedTask*> tasks;
  for (const SurveyedTask& task : survey.tasks)
    if (task.cells) tasks.push_back(&task);
  std::string result;
  for (size_t first = 0; first < tasks.size(); first += kTasksAcross) {
    const size_t last = std::min(first + kTasksAcross, tasks.size());
    result += fmt::format("{:<23}", "");
    for (size_t i = first; i < last; ++i)
      result += fmt::format(" {:>11}", short_name(tasks[i]->name).substr(0, 11));
    result += "\n";
    for (const std::string& name : names) {
      result += fmt::format("{:<23}", name.substr(0, 23));
      for (size_t i = first; i < last; ++i) {
        const SurveyCell* cell = cell_of(*tasks[i], name);
        result += fmt::format(" {:>11}", cell                               ? text(*cell)
                                         : refusal(*tasks[i], name).empty() ? ""
                                                                            : "refused");
      }
      result += "\n";
    }
  }
  return result;
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '&')
      result += "&amp;";
    else if (c == '"')
      result += "&quot;";
    else
      result += c;
  }
  return result;
}

std::string html_table(const Survey& survey, const std::vector<std::string>& names, CellText text,
                       std::string SurveyCell::*mark) {
  std::string result = "<div class=wide><table><thead><tr><th></th>";
  for (const SurveyedTask& task : survey.tasks)
    result += fmt::format("<th><a href=\"{}/report.html\">{}</a></th>", escaped(task.folder),
                          escaped(task.name));
  result += "</tr></thead><tbody>\n";
  for (const std::string& name : names) {
    result += fmt::format("<tr><th>{}</th>", escaped(name));
    for (const SurveyedTask& task : survey.tasks) {
      const SurveyCell* cell = cell_of(task, name);
      if (!cell) {
        const std::string why = refusal(task, name);
        result +=
            fmt::format("<td title=\"{}\">{}</td>", escaped(why), why.empty() ? "" : "refused");
        continue;
      }
      const std::string& value = cell->*mark;
      result += fmt::format(
          "<td class=\"{}\" title=\"{}\"><a href=\"{}/{}\">{}</a></td>",
          value == "+"   ? "plus"
          : value == "-" ? "minus"
                         : "even",
          escaped(fmt::format("{}; {}", cell->obtained, cell->status)), escaped(task.folder),
          cell->runs.empty() ? "report.html" : escaped(cell->runs[0]), escaped(text(*cell)));
    }
    result += "</tr>\n";
  }
  return result + "</tbody></table></div>\n";
}

constexpr const char* kStyle = R"(:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem}
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.35rem .7rem;text-align:right;border-bottom:1px solid #8884}
tbody th{text-align:left;font-weight:600}a{color:inherit}
.plus{background:#2a9d4e33}.minus{background:#d1495b33}
)";

}  // namespace

std::string survey_tables(const Survey& survey) {
  const std::vector<std::string> names = architectures(survey);
  std::string text = fmt::format("Model quality on {}\n", survey.cluster);
  text += table(survey, names, quality_text);
  text += "\nTraining time (to target)\n" + table(survey, names, time_text) + "\n";
  text += "quality: " + survey.rules.quality + "\n";
  text += "time: " + survey.rules.time + "\n";
  for (const SurveyedTask& task : survey.tasks)
    if (!task.skipped.empty()) text += fmt::format("{} is left out: {}\n", task.name, task.skipped);
  return text;
}

std::string survey_html(const Survey& survey) {
  const std::vector<std::string> names = architectures(survey);
  std::string page = fmt::format(
      "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport "
      "content=\"width=device-width\"><title>Survey</title><style>{}</style>\n"
      "<h1>Architectures by learning task</h1>\n<p>Cluster {}. Every cell comes from runs made "
      "here and leads to them; the name of a task leads to its report.</p>\n",
      kStyle, escaped(survey.cluster));
  page += "<h2>Model quality</h2>\n" +
          html_table(survey, names, quality_text, &SurveyCell::quality_mark);
  page += "<p>" + escaped(survey.rules.quality) + "</p>\n";
  page += "<h2>Training time</h2>\n" + html_table(survey, names, time_text, &SurveyCell::time_mark);
  page += "<p>" + escaped(survey.rules.time) + "</p>\n";
  for (const SurveyedTask& task : survey.tasks)
    if (!task.skipped.empty())
      page += fmt::format("<p>{} is left out: {}</p>\n", escaped(task.name), escaped(task.skipped));
  return page;
}

}  // namespace tutti

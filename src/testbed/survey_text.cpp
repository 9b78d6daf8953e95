// The two tables of a survey, for a terminal and as a page.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/units.h"
#include "testbed/survey.h"

namespace tutti {
namespace {

using nlohmann::json;

// Every architecture that some task has a cell for or refuses, in the order of their first
// appearance.
std::vector<std::string> architectures(const json& survey) {
  std::vector<std::string> names;
  for (const char* part : {"cells", "refused"})
    for (const json& task : survey["tasks"]) {
      const json entries = task.value(part, json::object());  // must outlive items()
      for (const auto& [name, entry] : entries.items())
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  return names;
}

std::string short_name(const std::string& task) { return task.substr(task.find('-') + 1); }

std::string quality_text(const json& cell) {
  if (cell["quality"].is_null()) return cell["status"] == "done" ? "-" : cell["status"];
  return fmt::format("{:.4g} {}", cell["quality"].get<double>(),
                     cell["quality_mark"].get<std::string>());
}

std::string time_text(const json& cell) {
  if (cell["time_s"].is_null()) return cell["status"] == "done" ? "missed -" : cell["status"];
  return fmt::format("{} {}", human_quantity(cell["time_s"], Unit::kSeconds),
                     cell["time_mark"].get<std::string>());
}

using CellText = std::string (*)(const json&);

// Why there is no cell; empty when nobody asked.
std::string refusal(const json& task, const std::string& name) {
  const auto refused = task.find("refused");
  return refused == task.end() ? "" : refused->value(name, "");
}

constexpr size_t kTasksAcross = 6;  // within 100 columns

std::string table(const json& survey, const std::vector<std::string>& names, CellText text) {
  std::vector<json> tasks;
  for (const json& task : survey["tasks"])
    if (task.contains("cells")) tasks.push_back(task);
  std::string result;
  for (size_t first = 0; first < tasks.size(); first += kTasksAcross) {
    const size_t last = std::min(first + kTasksAcross, tasks.size());
    result += fmt::format("{:<23}", "");
    for (size_t i = first; i < last; ++i)
      result += fmt::format(" {:>11}", short_name(tasks[i]["name"]).substr(0, 11));
    result += "\n";
    for (const std::string& name : names) {
      result += fmt::format("{:<23}", name.substr(0, 23));
      for (size_t i = first; i < last; ++i) {
        const json& cells = tasks[i]["cells"];
        result += fmt::format(" {:>11}", cells.contains(name)              ? text(cells[name])
                                         : refusal(tasks[i], name).empty() ? ""
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

std::string html_table(const json& survey, const std::vector<std::string>& names, CellText text,
                       const char* mark) {
  std::string result = "<div class=wide><table><thead><tr><th></th>";
  for (const json& task : survey["tasks"])
    result += fmt::format("<th><a href=\"{}/report.html\">{}</a></th>",
                          escaped(task["folder"].get<std::string>()),
                          escaped(task["name"].get<std::string>()));
  result += "</tr></thead><tbody>\n";
  for (const std::string& name : names) {
    result += fmt::format("<tr><th>{}</th>", escaped(name));
    for (const json& task : survey["tasks"]) {
      const json cells = task.value("cells", json::object());
      if (!cells.contains(name)) {
        const std::string why = refusal(task, name);
        result +=
            fmt::format("<td title=\"{}\">{}</td>", escaped(why), why.empty() ? "" : "refused");
        continue;
      }
      const json& cell = cells[name];
      const std::string value = cell[mark];
      result += fmt::format(
          "<td class=\"{}\" title=\"{}\"><a href=\"{}/{}\">{}</a></td>",
          value == "+"   ? "plus"
          : value == "-" ? "minus"
                         : "even",
          escaped(fmt::format("{}; {}", cell["obtained"].get<std::string>(),
                              cell["status"].get<std::string>())),
          escaped(task["folder"].get<std::string>()),
          cell["runs"].empty() ? "report.html" : escaped(cell["runs"][0].get<std::string>()),
          escaped(text(cell)));
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

std::string survey_tables(const json& survey) {
  const std::vector<std::string> names = architectures(survey);
  std::string text = fmt::format("Model quality on {}\n", survey["cluster"].get<std::string>());
  text += table(survey, names, quality_text);
  text += "\nTraining time (to target)\n" + table(survey, names, time_text) + "\n";
  text += "quality: " + survey["rules"]["quality"].get<std::string>() + "\n";
  text += "time: " + survey["rules"]["time"].get<std::string>() + "\n";
  for (const json& task : survey["tasks"])
    if (task.contains("skipped"))
      text += fmt::format("{} is left out: {}\n", task["name"].get<std::string>(),
                          task["skipped"].get<std::string>());
  return text;
}

std::string survey_html(const json& survey) {
  const std::vector<std::string> names = architectures(survey);
  std::string page = fmt::format(
      "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport "
      "content=\"width=device-width\"><title>Survey</title><style>{}</style>\n"
      "<h1>Architectures by learning task</h1>\n<p>Cluster {}. Every cell comes from runs made "
      "here and leads to them; the name of a task leads to its report.</p>\n",
      kStyle, escaped(survey["cluster"].get<std::string>()));
  page += "<h2>Model quality</h2>\n" + html_table(survey, names, quality_text, "quality_mark");
  page += "<p>" + escaped(survey["rules"]["quality"].get<std::string>()) + "</p>\n";
  page += "<h2>Training time</h2>\n" + html_table(survey, names, time_text, "time_mark");
  page += "<p>" + escaped(survey["rules"]["time"].get<std::string>()) + "</p>\n";
  for (const json& task : survey["tasks"])
    if (task.contains("skipped"))
      page += fmt::format("<p>{} is left out: {}</p>\n", escaped(task["name"].get<std::string>()),
                          escaped(task["skipped"].get<std::string>()));
  return page;
}

}  // namespace tutti

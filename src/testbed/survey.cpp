#include "testbed/survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "jobs/progress.h"
#include "jobs/recipes.h"
#include "jobs/run_folder.h"
#include "jobs/run_record.h"
#include "jobs/tasks.h"
#include "testbed/clusters.h"
#include "testbed/report.h"
#include "testbed/row.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr int kSurveySchema = 1;
constexpr double kTimeMargin = 0.2;      // a fifth faster than the median is a plus
constexpr double kQualityMargin = 0.05;  // a twentieth fewer errors likewise

json rules() {
  return {{"quality",
           fmt::format("final quality on test samples; + (-): its error is at least {:.0f} % "
                       "smaller (larger) than the median of the row's task",
                       100 * kQualityMargin)},
          {"time",
           fmt::format("time to target; + (-): at least {:.0f} % shorter ({:.0f} % longer) than "
                       "the median of the task; - also when the target is missed",
                       100 * kTimeMargin, 100 * (1 / (1 - kTimeMargin) - 1))}};
}

// What should be small: the share that is wrong, or the squared error.
double error_of(double quality, bool higher_is_better) {
  return higher_is_better ? 1 - quality : quality;
}

json cells_of(const json& comparison) {
  const bool higher = comparison["task"]["higher_is_better"];
  std::vector<double> errors, times;
  for (const json& row : comparison["strategies"]) {
    if (const auto final_test = number_at(row, "/quality/final/mean"))
      errors.push_back(error_of(*final_test, higher));
    if (const auto time = number_at(row, "/to_target_s/mean")) times.push_back(*time);
  }
  json cells = json::object();
  for (const json& row : comparison["strategies"]) {
    const auto final_test = number_at(row, "/quality/final/mean");
    const auto time = number_at(row, "/to_target_s/mean");
    cells[row["name"].get<std::string>()] = {
        {"status", row["status"]},
        {"error", row["error"]},
        {"obtained", row["obtained"]},
        {"quality", final_test ? json(*final_test) : json()},
        {"quality_mark", std::string(1, mark_of(final_test ? error_of(*final_test, higher) : NAN,
                                                errors, kQualityMargin))},
        {"time_s", time ? json(*time) : json()},
        {"time_mark", std::string(1, mark_of(time.value_or(NAN), times, kTimeMargin))},
        {"reached", row["reached"]},
        {"runs", row["runs"]}};
  }
  return cells;
}

std::string new_folder() {
  const std::time_t now = std::time(nullptr);
  char stamp[32];
  std::strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", std::localtime(&now));
  return fmt::format("surveys/{}", stamp);
}

json survey_task(const std::string& task, const SurveyOptions& options, const std::string& folder,
                 const std::atomic<bool>& stop) {
  Job job = load_job(find_recipe("tasks", task), {});
  job.cluster = load_cluster(options.cluster);
  json entry = {{"name", job.name},
                {"data", job.task.data.kind()},
                {"model", job.task.model.kind()},
                {"target", job.task.target},
                {"folder", job.name}};
  for (const ReferenceTask& known : reference_tasks())
    if (known.name == job.name) {
      entry["learning"] = known.learning;
      if (missing_files(job).empty()) continue;
      entry["skipped"] = fmt::format("its data is not on this machine; {} gets it", known.remedy);
      return entry;
    }
  CompareOptions compare_options = options.compare;
  std::string where;
  compare_options.out = folder + "/" + job.name;
  try {
    const json comparison = compare(job, compare_options, stop, where);
    entry["metric"] = comparison["task"]["metric"];
    entry["cells"] = cells_of(comparison);
    entry["refused"] = json::object();
    for (const json& refused : comparison["not_possible"])
      entry["refused"][refused["name"].get<std::string>()] = refused["reason"];
    write_file(where + "/report.html", report_html(comparison));
  } catch (const DataError& error) {
    entry["skipped"] = error.what();
  }
  return entry;
}

}  // namespace

char mark_of(double value, std::vector<double> all, double margin) {
  if (std::isnan(value) || all.empty()) return '-';
  std::sort(all.begin(), all.end());
  const size_t half = all.size() / 2;
  const double median = all.size() % 2 ? all[half] : (all[half - 1] + all[half]) / 2;
  if (value <= median * (1 - margin)) return value < median ? '+' : 'o';
  if (value >= median / (1 - margin)) return value > median ? '-' : 'o';
  return 'o';
}

json survey(const SurveyOptions& options, const std::atomic<bool>& stop, std::string& folder) {
  folder = options.compare.out.empty() ? new_folder() : options.compare.out;
  load_cluster(options.cluster);  // before anything is started
  const std::vector<std::string> tasks =
      options.tasks.empty() ? recipe_names("tasks") : options.tasks;
  for (const std::string& task : tasks) find_recipe("tasks", task);
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    throw ConfigError("--out", fmt::format("{}: cannot be written: {}", folder, failed.message()));

  json result = {{"schema", kSurveySchema},
                 {"kind", "survey"},
                 {"cluster", options.cluster},
                 {"rules", rules()},
                 {"tasks", json::array()}};
  for (const std::string& task : tasks) {
    if (options.compare.progress != ProgressStyle::kNone)
      tell(fmt::format("task {} ({} of {})\n", task, result["tasks"].size() + 1, tasks.size()));
    result["tasks"].push_back(survey_task(task, options, folder, stop));
    // After each task: a survey that is ended shows what it has.
    write_file(folder + "/survey.json", json_text(result, 1) + "\n");
    write_file(folder + "/survey.html", survey_html(result));
  }
  return result;
}

}  // namespace tutti

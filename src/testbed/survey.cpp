#include "testbed/survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>

#include "core/described_json.h"
#include "core/error.h"
#include "jobs/progress.h"
#include "jobs/recipes.h"
#include "jobs/run_folder.h"
#include "jobs/run_record.h"
#include "jobs/tasks.h"
#include "testbed/clusters.h"
#include "testbed/report.h"

namespace tutti {
namespace {

constexpr double kTimeMargin = 0.2;      // a fifth faster than the median is a plus
constexpr double kQualityMargin = 0.05;  // a twentieth fewer errors likewise

SurveyRules rules() {
  return {fmt::format("final quality on test samples; + (-): its error is at least {:.0f} % "
                      "smaller (larger) than the median of the task",
                      100 * kQualityMargin),
          fmt::format("time to target; + (-): at least {:.0f} % shorter ({:.0f} % longer) than "
                      "the median of the task; - also when the target is missed",
                      100 * kTimeMargin, 100 * (1 / (1 - kTimeMargin) - 1))};
}

// What should be small: the share that is wrong, or the squared error.
double error_of(double quality, bool higher_is_better) {
  return higher_is_better ? 1 - quality : quality;
}

// What cells are marked against: a wall clock and a simulated one are not of one field.
struct Field {
  std::vector<double> errors, times;
};

std::map<std::string, SurveyCell> cells_of(const Comparison& comparison) {
  const bool higher = comparison.task.higher_is_better;
  const auto mean = [](const OverSeeds& figure) { return figure ? figure->mean : std::nullopt; };
  std::map<std::string, Field> by_clock;
  for (const ComparedStrategy& row : comparison.strategies) {
    Field& field = by_clock[row.obtained];
    if (const auto final_test = mean(row.quality.final_test))
      field.errors.push_back(error_of(*final_test, higher));
    if (const auto time = mean(row.to_target_s)) field.times.push_back(*time);
  }
  std::map<std::string, SurveyCell> cells;
  for (const ComparedStrategy& row : comparison.strategies) {
    const auto final_test = mean(row.quality.final_test), time = mean(row.to_target_s);
    const Field& field = by_clock[row.obtained];
    const char quality_mark =
        mark_of(final_test ? error_of(*final_test, higher) : NAN, field.errors, kQualityMargin);
    const char time_mark = mark_of(time.value_or(NAN), field.times, kTimeMargin);
    cells[row.name] = {.status = row.status,
                       .error = row.error,
                       .obtained = row.obtained,
                       .quality = final_test,
                       .quality_mark = std::string(1, quality_mark),
                       .time_s = time,
                       .time_mark = std::string(1, time_mark),
                       .reached = row.reached,
                       .runs = row.runs};
  }
  return cells;
}

std::string new_folder() {
  const std::time_t now = std::time(nullptr);
  char stamp[32];
  std::strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", std::localtime(&now));
  return fmt::format("surveys/{}", stamp);
}

// Adds to `spent` what the comparison of the task has consumed.
SurveyedTask survey_task(const std::string& task, const SurveyOptions& options,
                         const std::string& folder, const std::atomic<bool>& stop,
                         std::optional<Spent>& spent) {
  Job job = load_job(find_recipe("tasks", task), {});
  job.cluster = load_cluster(options.cluster);
  SurveyedTask entry;
  entry.name = entry.folder = job.name;
  entry.data = job.task.data.kind();
  entry.model = job.task.model.kind();
  entry.target = job.task.target;
  for (const ReferenceTask& known : reference_tasks())
    if (known.name == job.name) {
      entry.learning = known.learning;
      if (missing_files(job).empty()) continue;
      entry.skipped = fmt::format("its data is not on this machine; {} gets it", known.remedy);
      return entry;
    }
  CompareOptions compare_options = options.compare;
  std::string where;
  compare_options.out = folder + "/" + job.name;
  try {
    const Comparison comparison = compare(job, compare_options, stop, where);
    if (comparison.spent) spent = spent.value_or(Spent{}) + *comparison.spent;
    entry.metric = comparison.task.metric;
    entry.cells = cells_of(comparison);
    entry.refused.emplace();
    for (const Refusal& refused : comparison.not_possible)
      (*entry.refused)[refused.name] = refused.reason;
    write_file(where + "/report.html", report_html(comparison));
  } catch (const DataError& error) {
    entry.skipped = error.what();
  }
  return entry;
}

}  // namespace

void visit(RecordVisitor& v, SurveyCell& cell) {
  v.field("status", cell.status, "`done`, or how a run ended that did not end well");
  v.field("error", cell.error, "Why that run did not end as it should");
  v.field("obtained", cell.obtained, "`measured` or `simulated`");
  v.field("quality", cell.quality, "On test samples at the end, mean over seeds");
  v.field("quality_mark", cell.quality_mark, "`+`, `o` or `-` by `rules.quality`");
  v.field("time_s", cell.time_s, "Time to target, mean over seeds");
  v.field("time_mark", cell.time_mark, "`+`, `o` or `-` by `rules.time`");
  v.field("reached", cell.reached, "Number of seeds that reached the target");
  v.field("runs", cell.runs, "Folders of its runs, below that of the task");
}

void visit(RecordVisitor& v, SurveyedTask& task) {
  constexpr Presence kWhenKnown = Presence::kWhenKnown;
  v.field("name", task.name, "Name of the task");
  v.field("data", task.data, "`task.data.kind`");
  v.field("model", task.model, "`task.model.kind`");
  v.field("target", task.target, "`task.target`");
  v.field("folder", task.folder, "Folder of its comparison, below that of the survey");
  v.field("learning", task.learning, "What kind of learning a reference task stands for",
          kWhenKnown);
  v.field("skipped", task.skipped, "Why the task is left out", kWhenKnown);
  v.field("metric", task.metric, "`accuracy` or `mse`", kWhenKnown);
  v.field("cells", task.cells, "What came of each architecture", kWhenKnown);
  v.field("refused", task.refused, "Why an architecture cannot run this task", kWhenKnown);
}

void visit(RecordVisitor& v, SurveyRules& rules) {
  v.field("quality", rules.quality, "How quality is marked");
  v.field("time", rules.time, "How time is marked");
}

void visit(RecordVisitor& v, Survey& survey) {
  v.field("schema", survey.schema, "Version of this description: 1");
  v.field("kind", survey.kind, "`survey`");
  v.field("cluster", survey.cluster, "Name of the cluster, or its file");
  v.field("rules", survey.rules, "What the marks mean");
  v.field("tasks", survey.tasks, "One for each task");
  v.field("spent", survey.spent, "What the machine that computed all this spent on it",
          Presence::kWhenKnown);
}

char mark_of(double value, std::vector<double> all, double margin) {
  if (std::isnan(value) || all.empty()) return '-';
  std::sort(all.begin(), all.end());
  const size_t half = all.size() / 2;
  const double median = all.size() % 2 ? all[half] : (all[half - 1] + all[half]) / 2;
  if (value <= median * (1 - margin)) return value < median ? '+' : 'o';
  if (value >= median / (1 - margin)) return value > median ? '-' : 'o';
  return 'o';
}

Survey survey(const SurveyOptions& options, const std::atomic<bool>& stop, std::string& folder) {
  folder = options.compare.out.empty() ? new_folder() : options.compare.out;
  load_cluster(options.cluster);  // before anything is started
  const std::vector<std::string> tasks =
      options.tasks.empty() ? recipe_names("tasks") : options.tasks;
  for (const std::string& task : tasks) find_recipe("tasks", task);
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    throw ConfigError("--out",
                      fmt::format("{}: the folder of the survey cannot be written: {}; name one "
                                  "with --out where you may write",
                                  folder, failed.message()));

  Survey result;
  result.cluster = options.cluster;
  result.rules = rules();
  for (const std::string& task : tasks) {
    if (options.compare.progress != ProgressStyle::kNone)
      tell(fmt::format("task {} ({} of {})\n", task, result.tasks.size() + 1, tasks.size()));
    result.tasks.push_back(survey_task(task, options, folder, stop, result.spent));
    // After each task: a survey that is ended shows what it has.
    write_file(folder + "/survey.json", json_text(json_of(result), 1) + "\n");
    write_file(folder + "/survey.html", survey_html(result));
  }
  return result;
}

}  // namespace tutti

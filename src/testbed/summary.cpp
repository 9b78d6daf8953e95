#include "testbed/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <map>

#include "core/error.h"
#include "core/units.h"
#include "fabric/virtual/validation.h"
#include "jobs/task_identity.h"
#include "jobs/versions.h"
#include "testbed/comparison_check.h"
#include "testbed/definitions.h"
#include "testbed/variants.h"

namespace tutti {
namespace {

using nlohmann::json;

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return stamp;
}

std::string bits_per_second(double bytes_per_second) {
  const double bits = 8 * bytes_per_second;
  return bits >= 1e9 ? fmt::format("{:g} Gbit/s", bits / 1e9)
                     : fmt::format("{:g} Mbit/s", bits / 1e6);
}

std::string describe(const ClusterConfig& c) {
  const std::string plural = c.workers == 1 ? "" : "s";
  if (c.fabric != "virtual")
    return fmt::format("{} process{}", c.workers, c.workers == 1 ? "" : "es");
  std::string text =
      fmt::format("{} node{} of {} on {}, {}", c.workers, plural,
                  human_quantity(c.speed_flops, Unit::kFlopsPerSecond),
                  bits_per_second(c.bandwidth), human_quantity(c.latency_s, Unit::kSeconds));
  if (c.racks > 1)
    text += fmt::format(", in {} racks with {}", c.racks, bits_per_second(c.rack_bandwidth));
  if (c.nodes_per_host > 1) text += fmt::format(", {} on a host", c.nodes_per_host);
  if (!c.speed_factors.empty() || !c.thread_counts.empty()) text += ", of different speeds";
  if (!c.stragglers.empty()) text += ", with stragglers";
  if (!c.faults.empty()) text += ", with faults";
  return text;
}

bool same_clock(const RunFiles& a, const RunFiles& b) {
  return a.record.at("obtained") == b.record.at("obtained");
}

// How far along `axis` every finished run has come (those that `counts`).
std::optional<double> common_end(const std::vector<Contender>& contenders, const char* axis,
                                 const std::function<bool(const RunFiles&)>& counts) {
  std::optional<double> end;
  for (const Contender& contender : contenders)
    for (const RunFiles& run : contender.runs) {
      if (!is_done(run) || !counts(run)) continue;
      const std::vector<CurvePoint> curve = quality_curve(run, axis);
      if (!curve.empty()) end = std::min(end.value_or(curve.back().x), curve.back().x);
    }
  return end;
}

void add_equal_quality(json& row, const Contender& contender,
                       const std::vector<Contender>& contenders) {
  const auto quality_at = [&](const char* axis,
                              const std::function<bool(const RunFiles&)>& counts) {
    const auto end = common_end(contenders, axis, counts);
    if (!end) return json();
    return stat_json(statistic(values_of(contender, [&](const RunFiles& run) {
      return is_done(run) ? value_at(quality_curve(run, axis), *end) : std::nullopt;
    })));
  };
  row["quality"]["at_equal_samples"] = quality_at("samples", [](const RunFiles&) { return true; });
  row["quality"]["at_equal_time"] = quality_at(
      "time_s", [&](const RunFiles& run) { return same_clock(run, contender.runs.front()); });
}

void add_efficiency(json& row, const json& rows) {
  for (const json& solo : rows) {
    if (solo["kind"] != "solo" || solo["fabric"] != row["fabric"]) continue;
    const auto alone = number_at(solo, "/samples_per_s/mean");
    const auto together = number_at(row, "/samples_per_s/mean");
    if (alone && together && *alone > 0 && solo["status"] == "done" && row["status"] == "done")
      row["scaling_efficiency"] = *together / (*alone * row["workers"].get<double>());
    return;
  }
}

// Curves are shared between runs; a reader wants the strategy.
void name_shared_curve(json& row, const Contender& contender,
                       const std::vector<Contender>& contenders) {
  const auto base = [](const std::string& path) { return std::filesystem::path(path).filename(); };
  for (const RunFiles& run : contender.runs)
    for (const Contender& other : contenders)
      for (const RunFiles& source : other.runs)
        if (!run.curve_of.empty() && base(run.curve_of) == base(source.folder))
          row["shared_curve_of"] = other.name;
}

// Returns whether two runs are the same. On a virtual cluster two strategies may make identical
// runs, for example one without a bound and one whose bound never held anybody back. Measured times
// are never equal.
bool took_the_run(const Contender& one, const Contender& other) {
  const auto same = [](const RunFiles& a, const RunFiles& b) {
    for (const char* key : {"parameters_sha256", "status", "steps", "bytes_sent", "messages"})
      if (a.record.value(key, json()) != b.record.value(key, json())) return false;
    return a.job.task.seed == b.job.task.seed && a.record.at("obtained") == "simulated" &&
           a.cost_only() == b.cost_only() && a.curve_of.empty() && b.curve_of.empty() &&
           number_at(a.record, "/time/total_s") == number_at(b.record, "/time/total_s") &&
           a.series.time_s == b.series.time_s;
  };
  return one.runs.size() == other.runs.size() &&
         std::equal(one.runs.begin(), one.runs.end(), other.runs.begin(), same);
}

void name_same_runs(json& rows, const std::vector<Contender>& contenders) {
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i]["same_run_as"] = nullptr;
    for (size_t k = 0; k < i && rows[i]["same_run_as"].is_null(); ++k)
      if (rows[i]["kind"] == rows[k]["kind"] && rows[k]["same_run_as"].is_null() &&
          took_the_run(contenders[i], contenders[k]))
        rows[i]["same_run_as"] = rows[k]["name"];
  }
}

// The same for all seeds of a strategy, and different for everything else.
std::string group_key(const RunFiles& run) {
  Job job = with_settings(run.job, {});
  job.task.seed = 0;
  if (!run.curve_of.empty()) {  // stopped where the other seed's curve ends
    job.cluster.cost_only = false;
    job.task.max_steps = 0;
  }
  std::string key = resolved_toml(job);
  if (run.record.at("obtained") == "measured") key += run.record.value("machine", json()).dump();
  return key;
}

void make_unique(std::vector<Contender>& contenders) {
  const auto repeated = [&](const std::string& name) {
    return std::count_if(contenders.begin(), contenders.end(),
                         [&](const Contender& c) { return c.name == name; }) > 1;
  };
  const auto rename = [&](const std::function<std::string(const Contender&)>& to) {
    std::vector<std::string> names;
    for (const Contender& c : contenders) names.push_back(repeated(c.name) ? to(c) : c.name);
    for (size_t i = 0; i < names.size(); ++i) contenders[i].name = names[i];
  };
  rename([](const Contender& c) { return variant_name(c.runs.front().job); });
  rename([](const Contender& c) {
    const ClusterConfig& cluster = c.runs.front().job.cluster;
    return fmt::format("{} {} x{}", c.name, cluster.fabric, cluster.workers);
  });
  std::map<std::string, int> seen;
  for (Contender& c : contenders)
    if (const int times = ++seen[c.name]; times > 1) c.name += fmt::format(" #{}", times);
}

// Returns in what the tasks of two runs differ; empty when they do not. Records of older versions
// do not identify their task, so their settings must be equal.
std::string difference_of_tasks(const RunFiles& here, const RunFiles& there) {
  const json ours = here.record.value("task", json()), theirs = there.record.value("task", json());
  if (ours.is_object() && theirs.is_object()) return task_difference(ours, theirs);
  const auto settings = [](const RunFiles& run) {
    const TaskConfig& task = run.job.task;
    return fmt::format("data {} {} limit {}, model {}, batch {}, target {}", task.data.kind(),
                       path_of(task.data), task.data.limit, task.model.kind(), task.global_batch,
                       task.target);
  };
  return settings(here) == settings(there)
             ? ""
             : fmt::format("{} (there {})", settings(here), settings(there));
}

void expect_one_task(const std::vector<Contender>& contenders) {
  const RunFiles& first = contenders.front().runs.front();
  for (const Contender& contender : contenders)
    for (const RunFiles& run : contender.runs)
      if (const std::string text = difference_of_tasks(run, first); !text.empty())
        throw ConfigError("PATH",
                          fmt::format("{}: is a run of another task than {}: {}; only results of "
                                      "one task can stand side by side, make a report of each",
                                      run.folder, first.folder, text));
}

// A [[compare]] entry may change the task. Its row is then kept, because somebody asked for it, and
// the difference is shown.
std::string rows_of_other_tasks(const std::vector<Contender>& contenders) {
  std::string names;
  const RunFiles& first = contenders.front().runs.front();
  for (const Contender& contender : contenders)
    if (const std::string text = difference_of_tasks(contender.runs.front(), first); !text.empty())
      names += fmt::format("{}{}: {}", names.empty() ? "" : "; ", contender.name, text);
  return names;
}

// How far simulated times were from measured ones, for whoever reads them.
std::string validation_text() {
  const NetworkValidation& v = kNetworkValidation;
  return fmt::format(
      "Simulated times of all-reduces were off by {:.1f} % on average (worst {:.0f} %) from real "
      "TCP "
      "on shaped links, and in the right order in {} of {} pairs ({}, {} cases, `{}`).",
      100 * v.mean_absolute_error, 100 * v.worst_error, v.pairs_in_order, v.pairs, v.date, v.cases,
      v.command);
}

}  // namespace

json summarise(const std::string& name, Job& job, const std::vector<Contender>& contenders) {
  TUTTI_CHECK(!contenders.empty());
  json rows = json::array();
  for (const Contender& contender : contenders) {
    json row = strategy_row(contender);
    add_equal_quality(row, contender, contenders);
    name_shared_curve(row, contender, contenders);
    rows.push_back(std::move(row));
  }
  name_same_runs(rows, contenders);
  const json before = rows;
  for (json& row : rows) add_efficiency(row, before);
  // The record that says most: of a run that ended, if there is one.
  const json* record = &contenders.front().runs.front().record;
  for (const Contender& contender : contenders)
    for (const RunFiles& run : contender.runs)
      if (is_done(run) && record->at("status") != "done") record = &run.record;
  const TaskConfig& task = job.task;
  // Where nothing ended, what would have been measured is not known either.
  const std::string said = record->at("quality").value("metric", "");
  const std::string metric = said.empty() ? "quality" : said;
  const json seeds = rows.front()["seeds"];
  const std::string description = describe(job.cluster);
  json definitions = comparison_definitions();
  if (const std::string others = rows_of_other_tasks(contenders); !others.empty())
    definitions["tasks"] = fmt::format(
        "These rows are of another task than the first, so that not the architecture alone makes "
        "the difference: {}.",
        others);
  return {{"schema", kComparisonSchema},
          {"kind", "comparison"},
          {"name", name},
          {"created", now_utc()},
          {"title", fmt::format("{}: {} by {} on {}", name, task.data.kind(), task.model.kind(),
                                description)},
          {"task",
           {{"data", task.data.kind()},
            {"model", task.model.kind()},
            {"global_batch", task.global_batch},
            {"epochs", task.epochs},
            {"target", task.target > 0 ? json(task.target) : json()},
            {"metric", metric},
            {"higher_is_better", record->at("quality").value("higher_is_better", true)},
            {"identity", record->value("task", json())},
            {"seeds", seeds}}},
          {"cluster",
           {{"fabric", job.cluster.fabric},
            {"workers", job.cluster.workers},
            {"description", description}}},
          {"definitions", std::move(definitions)},
          {"job", resolved_toml(job)},
          {"versions", record->value("versions", library_versions())},
          {"machine", record->value("machine", machine_description())},
          {"validation", {{"text", validation_text()}}},
          {"not_possible", json::array()},
          {"strategies", std::move(rows)}};
}

json summarise_runs(const std::vector<std::string>& folders) try {
  if (folders.empty()) throw DataError("no runs were given");
  std::map<std::string, size_t> groups;
  std::vector<Contender> contenders;
  for (const std::string& folder : folders) {
    RunFiles run = read_run(folder);
    const auto [found, fresh] = groups.emplace(group_key(run), contenders.size());
    if (fresh) contenders.push_back({run.job.name, {}});
    contenders[found->second].runs.push_back(std::move(run));
  }
  for (Contender& contender : contenders)
    std::stable_sort(
        contender.runs.begin(), contender.runs.end(),
        [](const RunFiles& a, const RunFiles& b) { return a.job.task.seed < b.job.task.seed; });
  make_unique(contenders);
  expect_one_task(contenders);
  Job job = with_settings(contenders.front().runs.front().job, {});
  return summarise(contenders.size() == 1 ? job.name : "runs", job, contenders);
} catch (const json::exception&) {  // the check of a record missed something
  throw DataError(
      fmt::format("{}: its run.json{} is damaged: a value is of another type than it should be; "
                  "remove the folder and run it again",
                  folders[0], folders.size() > 1 ? ", or that of a run given with it," : ""));
}

std::string comparison_csv(const json& comparison) {
  struct Column {
    const char *title, *pointer;
  };
  constexpr Column kColumns[] = {{"best_quality", "/quality/best"},
                                 {"final_quality", "/quality/final"},
                                 {"validation_best", "/quality/validation_best"},
                                 {"validation_final", "/quality/validation_final"},
                                 {"test_final", "/quality/test_final"},
                                 {"quality_at_equal_samples", "/quality/at_equal_samples"},
                                 {"quality_at_equal_time", "/quality/at_equal_time"},
                                 {"to_target_s", "/to_target_s"},
                                 {"to_target_normalised_s", "/to_target_normalised_s"},
                                 {"steps_to_target", "/steps_to_target"},
                                 {"samples_to_target", "/samples_to_target"},
                                 {"converged_s", "/converged_s"},
                                 {"converged_steps", "/converged_steps"},
                                 {"total_s", "/total_s"},
                                 {"total_normalised_s", "/total_normalised_s"},
                                 {"wall_s", "/wall_s"},
                                 {"cpu_s", "/cpu_s"},
                                 {"startup_s", "/startup_s"},
                                 {"samples_per_s", "/samples_per_s"},
                                 {"steps", "/steps"},
                                 {"bytes_total", "/bytes_total"},
                                 {"bytes_per_node", "/bytes_per_node"},
                                 {"messages_total", "/messages_total"},
                                 {"messages_per_node", "/messages_per_node"},
                                 {"peak_memory_bytes", "/peak_memory_bytes"},
                                 {"utilisation", "/utilisation"},
                                 {"energy_j", "/energy_j"},
                                 {"co2e_g", "/co2e_g"},
                                 {"cost", "/cost"}};
  const auto text = [](const json& value) {
    std::string quoted = "\"";
    for (const char c : value.get<std::string>()) quoted += c == '"' ? "\"\"" : std::string(1, c);
    return quoted + "\"";
  };
  std::string csv = "strategy,seed,kind,structure,timing,fabric,workers,obtained,status";
  for (const Column& column : kColumns) csv += fmt::format(",{}", column.title);
  csv += "\n";
  for (const json& row : comparison["strategies"])
    for (size_t i = 0; i < row["seeds"].size(); ++i) {
      csv += fmt::format("{},{},{},{},{},{},{},{},{}", text(row["name"]), row["seeds"][i].dump(),
                         text(row["kind"]), text(row["taxonomy"]["structure"]),
                         text(row["taxonomy"]["timing"]), text(row["fabric"]),
                         row["workers"].dump(), text(row["obtained"]), text(row["status"]));
      for (const Column& column : kColumns) {
        const auto value = number_at(row, fmt::format("{}/values/{}", column.pointer, i));
        csv += value ? fmt::format(",{}", *value) : ",";
      }
      csv += "\n";
    }
  return csv;
}

}  // namespace tutti

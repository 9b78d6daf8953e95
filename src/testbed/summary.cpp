#include "testbed/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <map>
#include <tuple>

#include "core/described_json.h"
#include "core/error.h"
#include "core/units.h"
#include "jobs/run_status.h"
#include "jobs/task_identity.h"
#include "jobs/versions.h"
#include "testbed/definitions.h"
#include "testbed/measured_records.h"
#include "testbed/variants.h"

namespace tutti {
namespace {

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
  if (c.fabric != FabricKind::kVirtual)
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

std::string declared_network(const ClusterConfig& c) {
  return c.fabric == FabricKind::kVirtual ? bits_per_second(c.bandwidth) : "";
}

bool same_clock(const RunFiles& a, const RunFiles& b) {
  return a.record.obtained == b.record.obtained;
}

// How far along `axis` every finished run has come (those that `counts`).
std::optional<double> common_end(const std::vector<Contender>& contenders, const Axis& axis,
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

void add_equal_quality(ComparedStrategy& row, const Contender& contender,
                       const std::vector<Contender>& contenders) {
  const auto quality_at = [&](const Axis& axis,
                              const std::function<bool(const RunFiles&)>& counts) -> OverSeeds {
    const auto end = common_end(contenders, axis, counts);
    if (!end) return std::nullopt;
    return statistic(values_of(contender, [&](const RunFiles& run) {
      return is_done(run) ? value_at(quality_curve(run, axis), *end) : std::nullopt;
    }));
  };
  row.quality.at_equal_samples = quality_at(samples_of, [](const RunFiles&) { return true; });
  row.quality.at_equal_time = quality_at(
      time_of, [&](const RunFiles& run) { return same_clock(run, contender.runs.front()); });
}

void add_efficiency(ComparedStrategy& row, const std::vector<ComparedStrategy>& rows) {
  for (const ComparedStrategy& solo : rows) {
    if (!is_baseline(solo.kind) || solo.fabric != row.fabric) continue;
    const auto alone = solo.samples_per_s ? solo.samples_per_s->mean : std::nullopt;
    const auto together = row.samples_per_s ? row.samples_per_s->mean : std::nullopt;
    if (alone && together && *alone > 0 && ended_well(solo.status) && ended_well(row.status))
      row.scaling_efficiency = *together / (*alone * static_cast<double>(row.workers.value_or(1)));
    return;
  }
}

// Curves are shared between runs; a reader wants the strategy.
void name_shared_curve(ComparedStrategy& row, const Contender& contender,
                       const std::vector<Contender>& contenders) {
  const auto base = [](const std::string& path) { return std::filesystem::path(path).filename(); };
  for (const RunFiles& run : contender.runs)
    for (const Contender& other : contenders)
      for (const RunFiles& source : other.runs)
        if (!run.curve_of.empty() && base(run.curve_of) == base(source.folder))
          row.shared_curve_of = other.name;
}

// Returns whether two runs are the same. On a virtual cluster two strategies may make identical
// runs, for example one without a bound and one whose bound never held anybody back. Measured times
// are never equal.
bool took_the_run(const Contender& one, const Contender& other) {
  const auto same = [](const RunFiles& a, const RunFiles& b) {
    const auto what = [](const RecordedRun& run) {
      return std::tie(run.parameters_sha256, run.status, run.steps, run.bytes_sent, run.messages,
                      run.time.total_s);
    };
    return what(a.record) == what(b.record) && a.job.task.seed == b.job.task.seed &&
           says(a.record.obtained, Obtained::kSimulated) && a.cost_only() == b.cost_only() &&
           a.curve_of.empty() && b.curve_of.empty() && a.series.time_s == b.series.time_s;
  };
  return one.runs.size() == other.runs.size() &&
         std::equal(one.runs.begin(), one.runs.end(), other.runs.begin(), same);
}

void name_same_runs(std::vector<ComparedStrategy>& rows, const std::vector<Contender>& contenders) {
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t k = 0; k < i && !rows[i].same_run_as; ++k)
      if (rows[i].kind == rows[k].kind && !rows[k].same_run_as &&
          took_the_run(contenders[i], contenders[k]))
        rows[i].same_run_as = rows[k].name;
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
  if (says(run.record.obtained, Obtained::kMeasured)) key += json_of(run.record.machine).dump();
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
    return fmt::format("{} {} x{}", c.name, word_of(cluster.fabric), cluster.workers);
  });
  std::map<std::string, int> seen;
  for (Contender& c : contenders)
    if (const int times = ++seen[c.name]; times > 1) c.name += fmt::format(" #{}", times);
}

// Returns in what the tasks of two runs differ; empty when they do not. Records of older versions
// do not identify their task, so their settings must be equal.
std::string difference_of_tasks(const RunFiles& here, const RunFiles& there) {
  if (here.record.task && there.record.task)
    return task_difference(*here.record.task, *there.record.task);
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

ComparedTask compared_task(const TaskConfig& task, const RecordedRun& record) {
  const DataEntry& data = data_entry(task.data.kind());
  const bool named = !data.folder && !data.generated;
  return {.data = std::string(task.data.kind()),
          .model = std::string(task.model.kind()),
          .file = named ? std::filesystem::path(path_of(task.data)).filename().string() : "",
          .global_batch = task.global_batch,
          .epochs = task.epochs,
          .target = task.target > 0 ? std::optional(task.target) : std::nullopt,
          // Where nothing ended, what would have been measured is not known either.
          .metric = record.quality.metric.empty() ? "quality" : record.quality.metric,
          .higher_is_better = record.quality.higher_is_better,
          .identity = record.task,
          .seeds = {}};
}

}  // namespace

Comparison summarise(const std::string& name, Job& job, const std::vector<Contender>& contenders) {
  TUTTI_CHECK(!contenders.empty());
  Comparison result;
  std::vector<ComparedStrategy>& rows = result.strategies;
  for (const Contender& contender : contenders) {
    rows.push_back(strategy_row(contender));
    add_equal_quality(rows.back(), contender, contenders);
    name_shared_curve(rows.back(), contender, contenders);
  }
  name_same_runs(rows, contenders);
  for (ComparedStrategy& row : rows) add_efficiency(row, rows);
  // The record that says most: of a run that ended, if there is one.
  const RunFiles* most = &contenders.front().runs.front();
  for (const Contender& contender : contenders)
    for (const RunFiles& run : contender.runs)
      if (is_done(run) && !is_done(*most)) most = &run;
  const RecordedRun& record = most->record;
  const std::string description = describe(job.cluster);
  result.name = name;
  result.created = now_utc();
  result.title = fmt::format("{}: {} by {} on {}", name, job.task.data.kind(),
                             job.task.model.kind(), description);
  result.task = compared_task(job.task, record);
  result.task.seeds = rows.front().seeds;
  result.cluster = {std::string(word_of(job.cluster.fabric)), job.cluster.workers, std::nullopt,
                    description, declared_network(job.cluster)};
  size_t seeds = 0;
  for (const Contender& contender : contenders) seeds = std::max(seeds, contender.runs.size());
  result.definitions = comparison_definitions(seeds > 1);
  if (const std::string others = rows_of_other_tasks(contenders); !others.empty())
    result.definitions["tasks"] = fmt::format(
        "These rows are of another task than the first, so that not the architecture alone makes "
        "the difference: {}.",
        others);
  result.job = resolved_toml(job);
  result.versions = record.versions ? record.versions : library_versions();
  result.machine = record.machine ? record.machine : machine_description();
  result.validation.text = validation_text();
  return result;
}

Comparison summarise_runs(const std::vector<std::string>& folders) {
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
}

}  // namespace tutti

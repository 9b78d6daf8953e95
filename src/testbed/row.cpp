#include "testbed/row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/quality.h"
#include "jobs/run_status.h"
#include "strategies/strategy.h"

namespace tutti {
namespace {

using nlohmann::json;

// Figures that are counted are compared as numbers.
template <class T>
std::optional<double> as_number(const std::optional<T>& value) {
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

// The strategy's own settings, as the resolved job has them.
json own_settings(const Job& job) {
  json settings = json::parse(strategy_settings(job), nullptr, false);
  if (!settings.is_object()) return json::object();
  settings.erase("kind");
  return settings;
}

using OfNode = std::function<double(const RecordedNode&)>;

std::optional<double> mean_of_nodes(const RunFiles& run, const OfNode& of) {
  const std::vector<RecordedNode>& nodes = run.record.nodes;
  if (nodes.empty()) return std::nullopt;
  double sum = 0;
  for (const RecordedNode& node : nodes) sum += of(node);
  return sum / static_cast<double>(nodes.size());
}

std::optional<double> largest_of_nodes(const RunFiles& run,
                                       std::optional<uint64_t> RecordedNode::*count) {
  std::optional<double> most;
  for (const RecordedNode& node : run.record.nodes)
    most = std::max(most.value_or(0), static_cast<double>((node.*count).value_or(0)));
  return most;
}

TimeSplit time_split(const Contender& contender) {
  const auto mean = [&](const OfNode& of) {
    const auto stat = statistic(
        values_of(contender, [&](const RunFiles& run) { return mean_of_nodes(run, of); }));
    return stat ? stat->mean : std::nullopt;
  };
  const auto phase = [&](std::optional<double> RecordedNode::*seconds) {
    return mean([=](const RecordedNode& node) { return (node.*seconds).value_or(0); });
  };
  return {
      .compute_s = phase(&RecordedNode::compute_s),
      .communicate_s = phase(&RecordedNode::communicate_s),
      .aggregate_s = phase(&RecordedNode::aggregate_s),
      .wait_s = phase(&RecordedNode::wait_s),
      .other_s = mean([](const RecordedNode& node) {
        double rest = node.total_s.value_or(0);
        for (const auto& part : {node.compute_s, node.communicate_s, node.aggregate_s, node.wait_s})
          rest -= part.value_or(0);
        return std::max(0.0, rest);
      })};
}

// The first evaluation that meets the target.
const RecordedEvaluation* at_target(const RunFiles& run) {
  const bool higher = run.record.quality.higher_is_better;
  for (const RecordedEvaluation& row : run.record.evaluations)
    if (row.quality && reaches(*row.quality, run.job.task.target, higher)) return &row;
  return nullptr;
}

std::optional<double> best_quality(const RunFiles& run) {
  const bool higher = run.record.quality.higher_is_better;
  std::optional<double> best;
  for (const CurvePoint& point : quality_curve(run, step_of))
    if (!best || is_better(point.y, *best, higher)) best = point.y;
  return best;
}

std::optional<double> last_quality(const RunFiles& run) {
  const std::vector<CurvePoint> curve = quality_curve(run, step_of);
  return curve.empty() ? std::nullopt : std::optional(curve.back().y);
}

std::optional<size_t> convergence_of(const RunFiles& run) {
  const std::vector<RecordedEvaluation>& evaluations = run.record.evaluations;
  if (!is_done(run) || evaluations.empty() || (run.cost_only() && run.curve_of.empty()))
    return std::nullopt;
  const double steps = step_of(evaluations.back()).value_or(0);
  const double epochs = evaluations.back().epoch.value_or(0);
  const ConvergenceRule rule;
  const size_t window =
      convergence_window(rule, run.series.loss.size(), epochs > 0 ? steps / epochs : 0);
  return converged_at(run.series.loss, window, rule.tolerance);
}

using OfRun = std::function<std::optional<double>(const RunFiles&)>;

// A weighted mean would need the numbers of updates; seeds of one strategy have about the same.
std::optional<double> mean_over_seeds(const Contender& contender, const OfRun& of) {
  const OverSeeds stat = statistic(values_of(contender, of));
  return stat ? stat->mean : std::nullopt;
}
std::optional<double> largest_over_seeds(const Contender& contender, const OfRun& of) {
  const OverSeeds stat = statistic(values_of(contender, of));
  return stat ? std::optional(stat->max) : std::nullopt;
}

void add_freshness(ComparedStrategy& row, const Contender& contender) {
  row.staleness.mean =
      mean_over_seeds(contender, [](const RunFiles& run) { return run.record.staleness.mean; });
  row.staleness.max =
      largest_over_seeds(contender, [](const RunFiles& run) { return run.record.staleness.max; });
  row.age_s.mean =
      mean_over_seeds(contender, [](const RunFiles& run) { return run.record.age_s.mean; });
  row.age_s.max =
      largest_over_seeds(contender, [](const RunFiles& run) { return run.record.age_s.max; });
  row.update_order =
      mean_over_seeds(contender, [](const RunFiles& run) { return run.record.update_order; });
  std::vector<int64_t>& counts = row.staleness.histogram;
  for (const RunFiles& run : contender.runs) {
    const std::vector<int64_t>& part = run.record.staleness.histogram;
    if (part.size() > counts.size()) counts.resize(part.size());
    for (size_t i = 0; i < part.size(); ++i) counts[i] += part[i];
  }
}

void add_times(ComparedStrategy& row, const Contender& contender) {
  const auto normalised = [](const RunFiles& run, std::optional<double> seconds) {
    const auto factor = run.record.time.normalised;
    return seconds && factor ? std::optional(*seconds * *factor) : std::nullopt;
  };
  const auto target = [](const RunFiles& run, const Axis& axis) {
    const RecordedEvaluation* reached = is_done(run) ? at_target(run) : nullptr;
    return reached ? axis(*reached) : std::nullopt;
  };
  // Over every seed: one that diverged has not reached the target, and that is said.
  const auto over_all = [&](auto of) {
    Values values;
    for (const RunFiles& run : contender.runs) values.push_back(of(run));
    return olympic_statistic(values);
  };
  row.to_target_s = over_all([&](const RunFiles& run) { return target(run, time_of); });
  row.to_target_normalised_s =
      over_all([&](const RunFiles& run) { return normalised(run, target(run, time_of)); });
  row.steps_to_target = over_all([&](const RunFiles& run) { return target(run, step_of); });
  row.samples_to_target = over_all([&](const RunFiles& run) { return target(run, samples_of); });
  row.reached = std::count_if(contender.runs.begin(), contender.runs.end(),
                              [&](const auto& run) { return target(run, step_of).has_value(); });
  row.converged_s = over_all([&](const RunFiles& run) -> std::optional<double> {
    const auto index = convergence_of(run);
    return index ? std::optional(run.series.time_s[*index]) : std::nullopt;
  });
  row.converged_steps = over_all([&](const RunFiles& run) -> std::optional<double> {
    const auto index = convergence_of(run);
    return index ? std::optional(static_cast<double>(run.series.step[*index])) : std::nullopt;
  });
  row.total_normalised_s = statistic(values_of(
      contender, [&](const RunFiles& run) { return normalised(run, run.record.time.total_s); }));
}

void add_figures(ComparedStrategy& row, const Contender& contender) {
  const auto figure = [&](auto of) {
    return statistic(
        values_of(contender, [&](const RunFiles& run) { return as_number(of(run.record)); }));
  };
  const auto largest = [&](std::optional<uint64_t> RecordedNode::*count) {
    return statistic(
        values_of(contender, [&](const RunFiles& run) { return largest_of_nodes(run, count); }));
  };
  using Run = RecordedRun;
  row.quality.best = row.quality.validation_best = statistic(values_of(contender, best_quality));
  row.quality.validation_final = statistic(values_of(contender, last_quality));
  row.quality.final_test = row.quality.test_final =
      figure([](const Run& run) { return run.quality.final_test; });
  row.total_s = figure([](const Run& run) { return run.time.total_s; });
  row.wall_s = figure([](const Run& run) { return run.time.wall_s; });
  row.cpu_s = figure([](const Run& run) { return run.time.cpu_s; });
  row.startup_s = figure([](const Run& run) { return run.time.startup_s; });
  row.samples_per_s = figure([](const Run& run) { return run.samples_per_s; });
  row.steps = figure([](const Run& run) { return run.steps; });
  row.peak_memory_bytes = figure([](const Run& run) { return run.peak_memory_bytes; });
  row.utilisation = figure([](const Run& run) { return run.utilisation; });
  row.bytes_total = figure([](const Run& run) { return run.bytes_sent; });
  row.messages_total = figure([](const Run& run) { return run.messages; });
  row.bytes_per_node = largest(&RecordedNode::bytes_sent);
  row.messages_per_node = largest(&RecordedNode::messages);
  row.kwh = figure([](const Run& run) { return run.energy.kwh; });
  row.energy_j = figure([](const Run& run) { return run.energy.joules; });
  row.co2e_g = figure([](const Run& run) { return run.co2e.grams; });
  row.cost = figure([](const Run& run) { return run.cost.amount; });
  row.spot_cost = figure([](const Run& run) { return run.cost.spot_amount; });
  row.time_split = time_split(contender);
}

void add_pictures(ComparedStrategy& row, const Contender& contender, const RunFiles& shown) {
  for (const RunFiles& run : contender.runs) {
    row.curves.push_back({run.job.task.seed, run.record.evaluations});
    ComparedSeries series{run.job.task.seed, run.series.step, run.series.time_s, run.series.samples,
                          run.series.loss};
    if (run.cost_only() && run.curve_of.empty())
      std::fill(series.loss.begin(), series.loss.end(), NAN);
    row.series.push_back(std::move(series));
  }
  row.timeline = shown.record.timeline;
  const auto& tables = shown.record.extra.tables;
  if (const auto labels = tables.find("labels_of_clients"); labels != tables.end())
    row.clients = labels->second;
  row.links = shown.record.links;
  row.nodes = shown.record.nodes;
}

}  // namespace

bool is_baseline(std::string_view kind) {
  return std::ranges::any_of(strategy_catalog(), [&](const StrategyEntry& entry) {
    return entry.name == kind && entry.one_worker;
  });
}

bool is_done(const RunFiles& run) { return ended_well(run.record.status); }

std::optional<double> step_of(const RecordedEvaluation& row) { return as_number(row.step); }
std::optional<double> samples_of(const RecordedEvaluation& row) { return as_number(row.samples); }
std::optional<double> time_of(const RecordedEvaluation& row) { return row.time_s; }

Values values_of(const Contender& contender,
                 const std::function<std::optional<double>(const RunFiles&)>& of) {
  const bool any = std::any_of(contender.runs.begin(), contender.runs.end(), is_done);
  Values values;
  for (const RunFiles& run : contender.runs)
    values.push_back(!any || is_done(run) ? of(run) : std::nullopt);
  return values;
}

std::vector<CurvePoint> quality_curve(const RunFiles& run, const Axis& axis) {
  std::vector<CurvePoint> curve;
  for (const RecordedEvaluation& row : run.record.evaluations)
    if (const auto x = axis(row); x && row.quality) curve.push_back({*x, *row.quality});
  return curve;
}

ComparedStrategy strategy_row(const Contender& contender) {
  // What is said once is said of the first run that ended well, and of its state if none did.
  const RunFiles* shown = &contender.runs.front();
  const RunFiles* worst = nullptr;
  for (const RunFiles& run : contender.runs) {
    if (!is_done(*shown) && is_done(run)) shown = &run;
    if (!worst && !is_done(run)) worst = &run;
  }
  const RecordedRun& record = shown->record;
  ComparedStrategy row;
  for (const RunFiles& run : contender.runs) {
    if (!run.missing.empty()) row.missing.push_back(run.missing);
    row.seeds.push_back(run.job.task.seed);
    row.runs.push_back(run.folder);
    row.statuses.push_back(run.record.status);
    if (row.remedy.empty()) row.remedy = run.record.quality.remedy;
  }
  row.name = contender.name;
  row.kind = shown->job.strategy_kind;
  row.settings = own_settings(shown->job);
  row.taxonomy = record.taxonomy;
  row.fabric = word_of(shown->job.cluster.fabric);
  row.workers = shown->job.cluster.workers;
  row.plan = record.plan;
  row.machines = as_number(record.machines);
  row.obtained = record.obtained;
  row.status = worst ? worst->record.status : "done";
  row.error = worst ? worst->record.error : "";
  row.task = record.task;
  row.energy_method = record.energy.method;
  row.co2e_method = record.co2e.method;
  row.cost_method = record.cost.method;
  row.currency = shown->job.footprint.currency;
  row.machine = record.machine;
  if (!shown->curve_of.empty())
    row.shared_curve_of = std::filesystem::path(shown->curve_of).filename().string();
  add_figures(row, contender);
  add_freshness(row, contender);
  add_times(row, contender);
  add_pictures(row, contender, *shown);
  return row;
}

}  // namespace tutti

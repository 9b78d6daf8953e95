#include "testbed/row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace tutti {
namespace {

using nlohmann::json;

json optional_json(const std::optional<double>& value) { return value ? json(*value) : json(); }

std::string text_at(const json& object, const std::string& pointer) {
  const json found = object.value(json::json_pointer(pointer), json());
  return found.is_string() ? found.get<std::string>() : "";
}

// The strategy's own settings, as the resolved job has them.
json own_settings(const Job& job) {
  json settings = json::parse(strategy_settings(job), nullptr, false);
  if (!settings.is_object()) return json::object();
  settings.erase("kind");
  return settings;
}

std::optional<double> mean_of_nodes(const RunFiles& run,
                                    const std::function<double(const json&)>& of) {
  const json& nodes = run.record.at("nodes");
  if (nodes.empty()) return std::nullopt;
  double sum = 0;
  for (const json& node : nodes) sum += of(node);
  return sum / static_cast<double>(nodes.size());
}

std::optional<double> largest_of_nodes(const RunFiles& run, const char* key) {
  std::optional<double> most;
  for (const json& node : run.record.at("nodes"))
    most = std::max(most.value_or(0), node.value(key, 0.0));
  return most;
}

json time_split(const Contender& contender) {
  json split;
  const auto mean = [&](const std::function<double(const json&)>& of) {
    const auto stat = statistic(
        values_of(contender, [&](const RunFiles& run) { return mean_of_nodes(run, of); }));
    return stat ? optional_json(stat->mean) : json();
  };
  constexpr const char* kPhases[] = {"compute_s", "communicate_s", "aggregate_s", "wait_s"};
  for (const char* phase : kPhases)
    split[phase] = mean([&](const json& node) { return node.value(phase, 0.0); });
  split["other_s"] = mean([&](const json& node) {
    double rest = node.value("total_s", 0.0);
    for (const char* phase : kPhases) rest -= node.value(phase, 0.0);
    return std::max(0.0, rest);
  });
  return split;
}

// The first evaluation that meets the target.
const json* at_target(const RunFiles& run) {
  const double target = run.job.task.target;
  if (target <= 0) return nullptr;
  const bool higher = run.record.at("quality").value("higher_is_better", true);
  for (const json& row : run.record.at("evaluations")) {
    const auto quality = number_at(row, "/quality");
    if (quality && (higher ? *quality >= target : *quality <= target)) return &row;
  }
  return nullptr;
}

std::optional<double> best_quality(const RunFiles& run) {
  const bool higher = run.record.at("quality").value("higher_is_better", true);
  std::optional<double> best;
  for (const CurvePoint& point : quality_curve(run, "step"))
    if (!best || (higher ? point.y > *best : point.y < *best)) best = point.y;
  return best;
}

std::optional<double> last_quality(const RunFiles& run) {
  const std::vector<CurvePoint> curve = quality_curve(run, "step");
  return curve.empty() ? std::nullopt : std::optional(curve.back().y);
}

std::optional<size_t> convergence_of(const RunFiles& run) {
  const json& evaluations = run.record.at("evaluations");
  if (!is_done(run) || evaluations.empty() || (run.cost_only() && run.curve_of.empty()))
    return std::nullopt;
  const double steps = number_at(evaluations.back(), "/step").value_or(0);
  const double epochs = number_at(evaluations.back(), "/epoch").value_or(0);
  const ConvergenceRule rule;
  const size_t window =
      convergence_window(rule, run.series.loss.size(), epochs > 0 ? steps / epochs : 0);
  return converged_at(run.series.loss, window, rule.tolerance);
}

// A weighted mean would need the numbers of updates; seeds of one strategy have about the same.
json freshness(const Contender& contender, const char* key, bool histogram) {
  json result;
  const auto figure = [&](const char* part, bool largest) {
    const auto stat = statistic(values_of(contender, [&](const RunFiles& run) {
      return number_at(run.record, fmt::format("/{}/{}", key, part));
    }));
    return stat ? (largest ? json(stat->max) : optional_json(stat->mean)) : json();
  };
  result = {{"mean", figure("mean", false)}, {"max", figure("max", true)}};
  if (!histogram) return result;
  std::vector<int64_t> counts;
  for (const RunFiles& run : contender.runs) {
    const json part = run.record.value(json::json_pointer("/staleness/histogram"), json::array());
    if (part.size() > counts.size()) counts.resize(part.size());
    for (size_t i = 0; i < part.size(); ++i) counts[i] += part[i].get<int64_t>();
  }
  result["histogram"] = counts;
  return result;
}

void add_times(json& row, const Contender& contender) {
  const auto normalised = [](const RunFiles& run, std::optional<double> seconds) {
    const auto factor = number_at(run.record, "/time/normalised");
    return seconds && factor ? std::optional(*seconds * *factor) : std::nullopt;
  };
  const auto target = [](const RunFiles& run, const char* key) {
    const json* reached = is_done(run) ? at_target(run) : nullptr;
    return reached ? number_at(*reached, key) : std::nullopt;
  };
  // Over every seed: one that diverged has not reached the target, and that is said.
  const auto over_all = [&](auto of) {
    Values values;
    for (const RunFiles& run : contender.runs) values.push_back(of(run));
    return stat_json(olympic_statistic(values));
  };
  row["to_target_s"] = over_all([&](const RunFiles& run) { return target(run, "/time_s"); });
  row["to_target_normalised_s"] =
      over_all([&](const RunFiles& run) { return normalised(run, target(run, "/time_s")); });
  row["steps_to_target"] = over_all([&](const RunFiles& run) { return target(run, "/step"); });
  row["samples_to_target"] = over_all([&](const RunFiles& run) { return target(run, "/samples"); });
  row["reached"] = std::count_if(contender.runs.begin(), contender.runs.end(),
                                 [&](const auto& run) { return target(run, "/step").has_value(); });
  row["converged_s"] = over_all([&](const RunFiles& run) -> std::optional<double> {
    const auto index = convergence_of(run);
    return index ? std::optional(run.series.time_s[*index]) : std::nullopt;
  });
  row["converged_steps"] = over_all([&](const RunFiles& run) -> std::optional<double> {
    const auto index = convergence_of(run);
    return index ? std::optional(static_cast<double>(run.series.step[*index])) : std::nullopt;
  });
  row["total_normalised_s"] = stat_json(statistic(values_of(contender, [&](const RunFiles& run) {
    return normalised(run, number_at(run.record, "/time/total_s"));
  })));
}

void add_figures(json& row, const Contender& contender) {
  const auto figure = [&](const std::string& pointer) {
    return stat_json(statistic(
        values_of(contender, [&](const RunFiles& run) { return number_at(run.record, pointer); })));
  };
  const auto largest = [&](const char* key) {
    return stat_json(statistic(
        values_of(contender, [&](const RunFiles& run) { return largest_of_nodes(run, key); })));
  };
  const json best = stat_json(statistic(values_of(contender, best_quality)));
  const json last = stat_json(statistic(values_of(contender, last_quality)));
  const json test = figure("/quality/final");
  row["quality"] = {{"best", best},
                    {"final", test},
                    {"validation_best", best},
                    {"validation_final", last},
                    {"test_final", test},
                    {"at_equal_samples", nullptr},
                    {"at_equal_time", nullptr}};
  for (const char* key : {"total_s", "wall_s", "cpu_s", "startup_s"})
    row[key] = figure(std::string("/time/") + key);
  for (const char* key : {"samples_per_s", "steps", "peak_memory_bytes", "utilisation"})
    row[key] = figure(std::string("/") + key);
  row["bytes_total"] = figure("/bytes_sent");
  row["messages_total"] = figure("/messages");
  row["bytes_per_node"] = largest("bytes_sent");
  row["messages_per_node"] = largest("messages");
  row["energy_j"] = figure("/energy/joules");
  row["co2e_g"] = figure("/co2e/grams");
  row["cost"] = figure("/cost/amount");
  row["time_split"] = time_split(contender);
  row["staleness"] = freshness(contender, "staleness", true);
  row["age_s"] = freshness(contender, "age_s", false);
  const auto order = statistic(values_of(
      contender, [](const RunFiles& run) { return number_at(run.record, "/update_order"); }));
  row["update_order"] = order ? optional_json(order->mean) : json();
  row["scaling_efficiency"] = nullptr;
}

void add_pictures(json& row, const Contender& contender, const RunFiles& shown) {
  json curves = json::array(), series = json::array();
  for (const RunFiles& run : contender.runs) {
    curves.push_back({{"seed", run.job.task.seed}, {"points", run.record.at("evaluations")}});
    json losses = json::array();
    const bool known = !run.cost_only() || !run.curve_of.empty();
    for (const double loss : run.series.loss)
      losses.push_back(known && std::isfinite(loss) ? json(loss) : json());
    series.push_back({{"seed", run.job.task.seed},
                      {"step", run.series.step},
                      {"time_s", run.series.time_s},
                      {"samples", run.series.samples},
                      {"loss", std::move(losses)}});
  }
  row["curves"] = std::move(curves);
  row["series"] = std::move(series);
  row["timeline"] = shown.record.at("timeline");
  row["clients"] =
      shown.record.value(json::json_pointer("/extra/tables/labels_of_clients"), json());
  row["links"] = shown.record.at("links");
  row["nodes"] = shown.record.at("nodes");
}

}  // namespace

bool is_done(const RunFiles& run) { return run.record.at("status") == "done"; }

std::optional<double> number_at(const json& object, const std::string& pointer) {
  const json::json_pointer path(pointer);
  if (!object.contains(path) || !object.at(path).is_number()) return std::nullopt;
  const double value = object.at(path).get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

json stat_json(const std::optional<Stat>& stat) {
  if (!stat) return nullptr;
  json values = json::array();
  for (const std::optional<double>& value : stat->values) values.push_back(optional_json(value));
  return {{"mean", optional_json(stat->mean)},
          {"min", stat->min},
          {"max", stat->max},
          {"values", std::move(values)}};
}

Values values_of(const Contender& contender,
                 const std::function<std::optional<double>(const RunFiles&)>& of) {
  const bool any = std::any_of(contender.runs.begin(), contender.runs.end(), is_done);
  Values values;
  for (const RunFiles& run : contender.runs)
    values.push_back(!any || is_done(run) ? of(run) : std::nullopt);
  return values;
}

std::vector<CurvePoint> quality_curve(const RunFiles& run, const char* axis) {
  std::vector<CurvePoint> curve;
  for (const json& row : run.record.at("evaluations")) {
    const auto x = number_at(row, std::string("/") + axis), y = number_at(row, "/quality");
    if (x && y) curve.push_back({*x, *y});
  }
  return curve;
}

json strategy_row(const Contender& contender) {
  // What is said once is said of the first run that ended well, and of its state if none did.
  const RunFiles* shown = &contender.runs.front();
  const RunFiles* worst = nullptr;
  for (const RunFiles& run : contender.runs) {
    if (!is_done(*shown) && is_done(run)) shown = &run;
    if (!worst && !is_done(run)) worst = &run;
  }
  json seeds = json::array(), folders = json::array(), missing = json::array();
  for (const RunFiles& run : contender.runs) {
    if (!run.missing.empty()) missing.push_back(run.missing);
    seeds.push_back(run.job.task.seed);
    folders.push_back(run.folder);
  }
  const json& record = shown->record;
  json row = {{"name", contender.name},
              {"kind", shown->job.strategy_kind},
              {"settings", own_settings(shown->job)},
              {"taxonomy", record.at("taxonomy")},
              {"fabric", shown->job.cluster.fabric},
              {"workers", shown->job.cluster.workers},
              {"plan", text_at(record, "/plan")},
              {"machines", optional_json(number_at(record, "/machines"))},
              {"obtained", record.at("obtained")},
              {"status", worst ? text_at(worst->record, "/status") : "done"},
              {"error", worst ? text_at(worst->record, "/error") : ""},
              {"shared_curve_of", nullptr},
              {"task", record.value("task", json())},
              {"missing", missing},
              {"seeds", std::move(seeds)},
              {"runs", std::move(folders)},
              {"energy_method", text_at(record, "/energy/method")},
              {"co2e_method", text_at(record, "/co2e/method")},
              {"cost_method", text_at(record, "/cost/method")},
              {"currency", shown->job.footprint.currency},
              {"machine", record.value("machine", json())}};
  if (!shown->curve_of.empty())
    row["shared_curve_of"] = std::filesystem::path(shown->curve_of).filename().string();
  add_figures(row, contender);
  add_times(row, contender);
  add_pictures(row, contender, *shown);
  return row;
}

}  // namespace tutti

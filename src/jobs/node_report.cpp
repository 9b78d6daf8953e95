#include "jobs/node_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/printable.h"

namespace tutti {
namespace {

using nlohmann::json;

double number_or_nan(const json& value) { return value.is_null() ? NAN : value.get<double>(); }

json rows_of(const std::vector<EvaluationRow>& evaluations) {
  json rows = json::array();
  for (const EvaluationRow& row : evaluations)
    rows.push_back({row.step, row.time_s, row.epoch, row.samples, row.loss, row.quality});
  return rows;
}

json freshness_json(const Freshness& f) {
  return {{"count", f.count},           {"staleness_mean", f.staleness_mean},
          {"age_mean_s", f.age_mean_s}, {"staleness_max", f.staleness_max},
          {"age_max_s", f.age_max_s},   {"histogram", f.histogram},
          {"disorder", f.disorder}};
}

Freshness freshness(const json& j) {
  Freshness f;
  f.count = j.at("count");
  f.staleness_mean = j.at("staleness_mean");
  f.staleness_max = j.at("staleness_max");
  f.age_mean_s = j.at("age_mean_s");
  f.age_max_s = j.at("age_max_s");
  f.histogram = j.at("histogram").get<std::vector<int64_t>>();
  f.disorder = j.at("disorder");
  return f;
}

json extra_series(const Extra& extra) {
  json all = json::object();
  for (const auto& [name, series] : extra.series) all[name] = series.points;
  return all;
}

json extra_tables(const Extra& extra) {
  json all = json::object();
  for (const auto& [name, table] : extra.tables)
    all[name] = {{"columns", table.columns}, {"rows", table.rows}};
  return all;
}

constexpr Phase kPhases[] = {Phase::kOther, Phase::kCompute, Phase::kAggregate, Phase::kWait,
                             Phase::kCommunicate};

Phase phase_of(const json& value) {
  const auto index = value.get<size_t>();
  if (index >= std::size(kPhases))
    throw DataError(fmt::format("a node reported a phase {} that there is not", index));
  return kPhases[index];
}

}  // namespace

const char* name_of(Phase phase) {
  switch (phase) {
    case Phase::kCompute:
      return "compute";
    case Phase::kAggregate:
      return "aggregate";
    case Phase::kWait:
      return "wait";
    case Phase::kCommunicate:
      return "communicate";
    case Phase::kOther:
      break;
  }
  return "other";
}

std::string to_text(const NodeReport& r) {
  json timeline = json::array();
  for (const Interval& interval : r.timeline)
    timeline.push_back({static_cast<size_t>(interval.phase), interval.begin_s, interval.end_s});
  return json{{"rank", r.rank},
              {"role", r.role},
              {"total_s", r.total_s},
              {"compute_s", r.compute_s},
              {"communicate_s", r.communicate_s},
              {"aggregate_s", r.aggregate_s},
              {"wait_s", r.wait_s},
              {"other_s", r.other_s},
              {"cpu_s", r.cpu_s},
              {"joules", r.joules},
              {"energy_method", r.energy_method},
              {"peak_memory_bytes", r.peak_memory_bytes},
              {"reference_flops", r.reference_flops},
              {"bytes_sent", r.bytes_sent},
              {"messages", r.messages},
              {"steps", r.steps},
              {"samples", r.samples},
              {"own_samples", r.own_samples},
              {"losses", r.losses},
              {"shares", r.shares},
              {"freshness", freshness_json(r.freshness)},
              {"counters", r.counters},
              {"test_quality", r.test_quality},
              {"sha256", r.parameters_sha256},
              {"evaluations", rows_of(r.evaluations)},
              {"links", r.links},
              {"traffic", r.traffic},
              {"step_ends", r.step_ends},
              {"timeline", timeline},
              {"extra",
               {{"series", extra_series(r.extra)},
                {"figures", r.extra.figures},
                {"tables", extra_tables(r.extra)}}}}
      .dump();
}

NodeReport node_report(const std::string& text) {
  NodeReport r;
  try {
    const json j = json::parse(text);
    r.rank = j.at("rank");
    r.role = printable(j.at("role").get<std::string>());
    r.total_s = j.at("total_s");
    r.compute_s = j.at("compute_s");
    r.communicate_s = j.at("communicate_s");
    r.aggregate_s = j.at("aggregate_s");
    r.wait_s = j.at("wait_s");
    r.other_s = j.at("other_s");
    r.cpu_s = j.at("cpu_s");
    r.joules = j.at("joules");
    r.energy_method = printable(j.at("energy_method").get<std::string>());
    r.peak_memory_bytes = j.at("peak_memory_bytes");
    r.reference_flops = j.at("reference_flops");
    r.bytes_sent = j.at("bytes_sent");
    r.messages = j.at("messages");
    r.steps = j.at("steps");
    r.samples = j.at("samples");
    r.own_samples = j.at("own_samples");
    for (const json& loss : j.at("losses")) r.losses.push_back(number_or_nan(loss));
    r.shares = j.at("shares").get<std::vector<int64_t>>();
    if (r.shares.size() != r.losses.size())
      throw DataError(fmt::format("a node reported {} losses and the samples of {}",
                                  r.losses.size(), r.shares.size()));
    r.freshness = freshness(j.at("freshness"));
    r.counters = j.at("counters").get<decltype(r.counters)>();
    r.test_quality = j.at("test_quality");
    r.parameters_sha256 = j.at("sha256");
    for (const json& row : j.at("evaluations"))
      r.evaluations.push_back({row.at(0), row.at(1), row.at(2), row.at(3), number_or_nan(row.at(4)),
                               number_or_nan(row.at(5))});
    r.links = j.at("links").get<decltype(r.links)>();
    r.traffic = j.at("traffic").get<decltype(r.traffic)>();
    r.step_ends = j.at("step_ends").get<std::vector<double>>();
    for (const json& row : j.at("timeline"))
      r.timeline.push_back({phase_of(row.at(0)), row.at(1), row.at(2)});
    for (const auto& [name, points] : j.at("extra").at("series").items())
      for (const json& point : points)
        r.extra.series[name].points.emplace_back(point.at(0), number_or_nan(point.at(1)));
    for (const auto& [name, value] : j.at("extra").at("figures").items())
      r.extra.figures[printable(name)] = number_or_nan(value);
    for (const auto& [name, table] : j.at("extra").at("tables").items())
      r.extra.tables[name] = {table.at("columns").get<std::vector<std::string>>(),
                              table.at("rows").get<std::vector<std::vector<double>>>()};
  } catch (const json::exception& error) {
    throw DataError(fmt::format("a node sent a report that cannot be read: {}", error.what()));
  }
  return r;
}

}  // namespace tutti

#include "jobs/run_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "jobs/versions.h"

namespace tutti {
namespace {

using nlohmann::json;

// JSON has no NaN: what is not a finite number is null, never a made-up value.
json number(double value) { return std::isfinite(value) ? json(value) : json(); }

template <class F>
double sum(const std::vector<NodeReport>& nodes, const F& of) {
  double total = 0;
  for (const NodeReport& node : nodes) total += of(node);
  return total;
}
template <class F>
double largest(const std::vector<NodeReport>& nodes, const F& of) {
  double most = 0;
  for (const NodeReport& node : nodes) most = std::max(most, of(node));
  return most;
}

struct QualityFigures {
  double best = NAN, final_test = NAN, last = NAN, to_target_s = NAN;
  bool reached = false;
};

QualityFigures quality_of(const RunRecord& record, const Job& job) {
  QualityFigures figures;
  for (const NodeReport& node : record.nodes) {
    if (node.rank != 0) continue;
    if (node.test_quality >= 0) figures.final_test = node.test_quality;
    for (const EvaluationRow& row : node.evaluations) {
      const bool better =
          std::isnan(figures.best) ||
          (record.higher_is_better ? row.quality > figures.best : row.quality < figures.best);
      if (better) figures.best = row.quality;
      figures.last = row.quality;
      const bool meets =
          job.task.target > 0 && (record.higher_is_better ? row.quality >= job.task.target
                                                          : row.quality <= job.task.target);
      if (meets && !figures.reached) {
        figures.reached = true;
        figures.to_target_s = row.time_s + (record.virtual_clock ? 0 : record.data_s);
      }
    }
  }
  return figures;
}

json quality_json(const RunRecord& record, const Job& job, const QualityFigures& figures) {
  return {{"metric", record.metric},
          {"best", number(figures.best)},
          {"last", number(figures.last)},
          {"final", number(figures.final_test)},
          {"target", job.task.target > 0 ? json(job.task.target) : json()},
          {"reached", figures.reached}};
}

double total_seconds(const RunRecord& record) {
  return largest(record.nodes, [](const NodeReport& n) { return n.total_s; }) +
         (record.virtual_clock ? 0 : record.data_s);
}

json time_json(const RunRecord& record, const QualityFigures& figures) {
  const auto mean = [&](auto of) {
    return record.nodes.empty() ? 0
                                : sum(record.nodes, of) / static_cast<double>(record.nodes.size());
  };
  return {{"clock", record.virtual_clock ? "virtual" : "wall"},
          {"startup_s", record.startup_s},
          {"data_s", record.data_s},
          {"to_target_s", number(figures.to_target_s)},
          {"total_s", total_seconds(record)},
          {"compute_s", mean([](const NodeReport& n) { return n.compute_s; })},
          {"communicate_s", mean([](const NodeReport& n) { return n.communicate_s; })},
          {"aggregate_s", mean([](const NodeReport& n) { return n.aggregate_s; })},
          {"wait_s", mean([](const NodeReport& n) { return n.wait_s; })},
          {"cpu_s", sum(record.nodes, [](const NodeReport& n) { return n.cpu_s; })}};
}

double utilisation(const RunRecord& record) {
  double busy = 0, total = 0;
  for (const NodeReport& node : record.nodes) {
    busy += node.compute_s + node.aggregate_s;
    total += node.total_s;
  }
  return total > 0 ? busy / total : 0;
}

double samples_per_second(const RunRecord& record) {
  const double samples =
      largest(record.nodes, [](const NodeReport& n) { return static_cast<double>(n.samples); });
  const double seconds = largest(record.nodes, [](const NodeReport& n) { return n.total_s; });
  return seconds > 0 ? samples / seconds : 0;
}

}  // namespace

std::string to_text(const NodeReport& r) {
  json evaluations = json::array();
  for (const EvaluationRow& row : r.evaluations)
    evaluations.push_back({row.step, row.time_s, row.epoch, row.loss, row.quality});
  return json{{"rank", r.rank},
              {"total_s", r.total_s},
              {"compute_s", r.compute_s},
              {"communicate_s", r.communicate_s},
              {"aggregate_s", r.aggregate_s},
              {"wait_s", r.wait_s},
              {"cpu_s", r.cpu_s},
              {"peak_memory_bytes", r.peak_memory_bytes},
              {"bytes_sent", r.bytes_sent},
              {"messages", r.messages},
              {"steps", r.steps},
              {"samples", r.samples},
              {"staleness_mean", r.staleness_mean},
              {"staleness_max", r.staleness_max},
              {"test_quality", r.test_quality},
              {"sha256", r.parameters_sha256},
              {"evaluations", evaluations}}
      .dump();
}

NodeReport node_report(const std::string& text) {
  NodeReport r;
  try {
    const json j = json::parse(text);
    r.rank = j.at("rank");
    r.total_s = j.at("total_s");
    r.compute_s = j.at("compute_s");
    r.communicate_s = j.at("communicate_s");
    r.aggregate_s = j.at("aggregate_s");
    r.wait_s = j.at("wait_s");
    r.cpu_s = j.at("cpu_s");
    r.peak_memory_bytes = j.at("peak_memory_bytes");
    r.bytes_sent = j.at("bytes_sent");
    r.messages = j.at("messages");
    r.steps = j.at("steps");
    r.samples = j.at("samples");
    r.staleness_mean = j.at("staleness_mean");
    r.staleness_max = j.at("staleness_max");
    r.test_quality = j.at("test_quality");
    r.parameters_sha256 = j.at("sha256");
    for (const json& row : j.at("evaluations"))
      r.evaluations.push_back({row.at(0), row.at(1), row.at(2), row.at(3), row.at(4)});
  } catch (const json::exception& error) {
    throw DataError(fmt::format("a node sent a report that cannot be read: {}", error.what()));
  }
  return r;
}

json to_json(const RunRecord& record, Job& job) {
  const QualityFigures quality = quality_of(record, job);
  const Taxonomy taxonomy = job.strategy->taxonomy();
  json nodes = json::array();
  for (const NodeReport& node : record.nodes) {
    json entry = json::parse(to_text(node));
    entry.erase("evaluations");
    nodes.push_back(std::move(entry));
  }
  json curve = json::array();
  if (!record.nodes.empty())
    for (const EvaluationRow& row : record.nodes.front().evaluations)
      curve.push_back({{"step", row.step},
                       {"time_s", row.time_s},
                       {"epoch", row.epoch},
                       {"loss", number(row.loss)},
                       {"quality", number(row.quality)}});
  json result = {
      {"schema", kRunSchema},
      {"name", job.name},
      {"status", record.status},
      {"exit_code", record.exit_code},
      {"strategy", job.strategy_kind},
      {"taxonomy",
       {{"structure", taxonomy.structure},
        {"parallelism", taxonomy.parallelism},
        {"optimisation", taxonomy.optimisation},
        {"timing", taxonomy.timing},
        {"pattern", taxonomy.pattern}}},
      {"fabric", job.cluster.fabric},
      {"workers", job.cluster.workers},
      {"seed", job.task.seed},
      {"obtained", record.virtual_clock ? "simulated" : "measured"},
      {"quality", quality_json(record, job, quality)},
      {"time", time_json(record, quality)},
      {"peak_memory_bytes",
       largest(record.nodes, [](const NodeReport& n) { return n.peak_memory_bytes; })},
      {"utilisation", utilisation(record)},
      {"steps", largest(record.nodes, [](const NodeReport& n) { return double(n.steps); })},
      {"samples_per_s", samples_per_second(record)},
      {"bytes_sent", sum(record.nodes, [](const NodeReport& n) { return double(n.bytes_sent); })},
      {"messages", sum(record.nodes, [](const NodeReport& n) { return double(n.messages); })},
      {"staleness",
       {{"mean", record.nodes.empty()
                     ? 0.0
                     : sum(record.nodes, [](const NodeReport& n) { return n.staleness_mean; }) /
                           static_cast<double>(record.nodes.size())},
        {"max", largest(record.nodes, [](const NodeReport& n) { return n.staleness_max; })}}},
      {"energy", {{"joules", record.joules}, {"method", record.energy_method}}},
      {"parameters_sha256", record.nodes.empty() ? "" : record.nodes.front().parameters_sha256},
      {"evaluations", std::move(curve)},
      {"nodes", std::move(nodes)},
      {"versions", library_versions()},
      {"machine", machine_description()},
      {"folder", record.folder}};
  for (const char* count : {"steps", "bytes_sent", "messages"})
    result[count] = static_cast<uint64_t>(result[count].get<double>());
  if (!record.error.empty()) result["error"] = record.error;
  return result;
}

std::string json_text(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

std::string summary(const RunRecord& record, Job& job) {
  const QualityFigures quality = quality_of(record, job);
  const char* clock = record.virtual_clock ? "virtual" : "wall";
  std::string text;
  if (record.status != "done") text += fmt::format("{}: {}\n", record.status, record.error);
  if (!std::isnan(quality.best)) {
    text += fmt::format("quality   {} {:.4f} on validation (best)", record.metric, quality.best);
    if (!std::isnan(quality.final_test))
      text += fmt::format(", {:.4f} on test", quality.final_test);
    text += "\n";
  }
  if (job.task.target > 0)
    text += quality.reached ? fmt::format("target    {} reached after {:.2f} s ({} clock)\n",
                                          job.task.target, quality.to_target_s, clock)
                            : fmt::format("target    {} not reached\n", job.task.target);
  if (!record.nodes.empty()) {
    const json time = time_json(record, quality);
    text += fmt::format(
        "time      {:.2f} s {}: compute {:.2f}, aggregate {:.2f}, communicate "
        "{:.2f}, wait {:.2f} (mean of nodes)\n",
        total_seconds(record), clock, time["compute_s"].get<double>(),
        time["aggregate_s"].get<double>(), time["communicate_s"].get<double>(),
        time["wait_s"].get<double>());
    text += fmt::format(
        "speed     {:.0f} samples/s, {} sent in {} messages, {:.0f} J ({})\n",
        samples_per_second(record),
        human_quantity(sum(record.nodes, [](const NodeReport& n) { return double(n.bytes_sent); }),
                       Unit::kBytes),
        sum(record.nodes, [](const NodeReport& n) { return double(n.messages); }), record.joules,
        record.energy_method.substr(0, record.energy_method.find(' ')));
  }
  return text + fmt::format("run       {}\n", record.folder);
}

}  // namespace tutti

#include "jobs/run_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "fabric/cluster.h"
#include "jobs/run_pictures.h"
#include "jobs/run_quality.h"
#include "jobs/versions.h"

namespace tutti {
namespace {

using nlohmann::json;

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

// Returns the mean speed of the nodes, relative to the reference.
double relative_speed(const RunRecord& record) {
  if (record.nodes.empty()) return 1;
  return sum(record.nodes, [](const NodeReport& n) { return n.reference_flops; }) /
         static_cast<double>(record.nodes.size()) / kReferenceFlops;
}

// Returns the factor from this run's seconds to those of nodes of the reference speed on the same
// network. It scales the share of the time in which nodes compute; the rest stays.
double normalisation(const RunRecord& record) {
  const double total_s = total_seconds(record);
  if (record.nodes.empty() || total_s <= 0) return 1;
  const double computing_s =
      sum(record.nodes, [](const NodeReport& n) { return n.compute_s + n.aggregate_s; }) /
      static_cast<double>(record.nodes.size());
  return 1 + (relative_speed(record) - 1) * std::min(1.0, computing_s / total_s);
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
          {"wall_s", record.wall_s},
          {"normalised", normalisation(record)},
          {"relative_speed", relative_speed(record)},
          {"series_count_data", true},  // older series.csv and evaluations.csv leave data_s out
          {"compute_s", mean([](const NodeReport& n) { return n.compute_s; })},
          {"communicate_s", mean([](const NodeReport& n) { return n.communicate_s; })},
          {"aggregate_s", mean([](const NodeReport& n) { return n.aggregate_s; })},
          {"wait_s", mean([](const NodeReport& n) { return n.wait_s; })},
          {"other_s", mean([](const NodeReport& n) { return n.other_s; })},
          {"cpu_s", sum(record.nodes, [](const NodeReport& n) { return n.cpu_s; })}};
}

json energy_parts_json(const std::vector<EnergyPart>& parts) {
  json rows = json::array();
  for (const EnergyPart& part : parts)
    rows.push_back({{"of", part.of}, {"ranks", part.ranks}, {"joules", part.joules}});
  return rows;
}

double utilisation(const RunRecord& record) {
  double busy = 0, total = 0;
  for (const NodeReport& node : record.nodes) {
    busy += node.compute_s + node.aggregate_s;
    total += node.total_s;
  }
  return total > 0 ? busy / total : 0;
}

// The totals include those of the run that this one resumes.
double total_steps(const RunRecord& record) {
  return static_cast<double>(record.resumed.steps) +
         largest(record.nodes, [](const NodeReport& n) { return static_cast<double>(n.steps); });
}
double total_samples(const RunRecord& record) {
  return std::max(static_cast<double>(record.resumed.samples),
                  largest(record.nodes, [](auto& n) { return static_cast<double>(n.samples); }));
}

// The speed is of this run alone, as its time is.
double samples_per_second(const RunRecord& record) {
  const double samples = total_samples(record) - static_cast<double>(record.resumed.samples);
  const double seconds = total_seconds(record);
  return seconds > 0 ? samples / seconds : 0;
}

}  // namespace

double total_seconds(const RunRecord& record) {
  return largest(record.nodes, [](const NodeReport& n) { return n.total_s; }) +
         (record.virtual_clock ? 0 : record.data_s);
}

std::vector<int> lost_nodes(const RunRecord& record) {
  std::vector<int> lost;
  for (size_t rank = 0; rank < record.outcomes.size(); ++rank)
    if (record.outcomes[rank].kind == NodeOutcome::Kind::kLost)
      lost.push_back(static_cast<int>(rank));
  return lost;
}

json to_json(const RunRecord& record, const Job& job) {
  const QualityFigures quality = quality_of(record, job);
  const Taxonomy taxonomy = job.strategy->taxonomy();
  const Freshness fresh = freshness_of_all(record.nodes);
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
      {"plan", record.plan},
      {"machines", record.machines},
      {"seed", job.task.seed},
      {"obtained", record.virtual_clock ? "simulated" : "measured"},
      {"quality", quality_json(record, job, quality)},
      {"time", time_json(record, quality)},
      {"peak_memory_bytes",
       largest(record.nodes, [](const NodeReport& n) { return n.peak_memory_bytes; })},
      {"utilisation", utilisation(record)},
      {"steps", total_steps(record)},
      {"samples", total_samples(record)},
      {"steps_to_target", quality.reached ? json(quality.at_target.step) : json()},
      {"samples_to_target", quality.reached ? json(quality.at_target.samples) : json()},
      {"samples_per_s", samples_per_second(record)},
      {"bytes_sent", sum(record.nodes, [](const NodeReport& n) { return double(n.bytes_sent); })},
      {"messages", sum(record.nodes, [](const NodeReport& n) { return double(n.messages); })},
      {"staleness",
       {{"mean", fresh.staleness_mean},
        {"max", fresh.staleness_max},
        {"histogram", fresh.histogram}}},
      {"age_s", {{"mean", fresh.age_mean_s}, {"max", fresh.age_max_s}}},
      {"update_order", fresh.disorder},
      {"counters", counters_of_all(record.nodes)},
      {"energy",
       {{"joules", record.joules},
        {"method", record.energy_method},
        {"parts", energy_parts_json(record.energy_parts)}}},
      {"co2e", {{"grams", record.co2e.value}, {"method", record.co2e.method}}},
      {"cost",
       {{"amount", record.cost.value},
        {"currency", job.footprint.currency},
        {"method", record.cost.method}}},
      {"parameters_sha256", record.nodes.empty() ? "" : record.nodes.front().parameters_sha256},
      {"evaluations", learning_curve(record.nodes, record.virtual_clock ? 0 : record.data_s)},
      {"nodes", node_rows(record.nodes)},
      {"links", link_rows(record.nodes)},
      {"timeline", step_timeline(record.nodes)},
      {"extra", extra_of(record.nodes)},
      {"lost", lost_nodes(record)},
      {"versions", library_versions()},
      {"machine", machine_description()},
      {"folder", record.folder}};
  for (const char* count : {"steps", "samples", "bytes_sent", "messages"})
    result[count] = static_cast<uint64_t>(result[count].get<double>());
  if (record.resumed.steps > 0)
    result["resumed"] = {{"steps", record.resumed.steps}, {"samples", record.resumed.samples}};
  if (!record.error.empty()) result["error"] = record.error;
  if (!record.task.empty()) result["task"] = json::parse(record.task);
  return result;
}

std::string json_text(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

std::string summary(const RunRecord& record, const Job& job) {
  const QualityFigures quality = quality_of(record, job);
  const char* clock = record.virtual_clock ? "virtual" : "wall";
  std::string text;
  if (record.exit_code != 0)  // whoever prints this says why on standard error
    text += fmt::format("status    {}\n", record.status);
  else if (record.status != "done")
    text += fmt::format("{}: {}\n", record.status, record.error);
  if (record.status == "done")
    for (const int rank : lost_nodes(record))
      text += fmt::format("lost      rank {}; the others went on without it\n", rank);
  text += quality_text(record, job, quality);
  if (record.resumed.steps > 0)
    text += fmt::format("resumed   at step {} of {}; time and speed are of the steps since then\n",
                        record.resumed.steps, total_steps(record));
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
  for (const NodeReport& node : record.nodes)
    for (const auto& [name, value] : node.extra.figures)
      text += fmt::format("figure    {} {:.4g}\n", name, value);
  return text + fmt::format("run       {}\n", record.folder);
}

}  // namespace tutti

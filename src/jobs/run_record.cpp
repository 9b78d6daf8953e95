#include "jobs/run_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "jobs/reference_kernel.h"
#include "jobs/run_pictures.h"
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

struct QualityFigures {
  double best = NAN, final_test = NAN, last = NAN, to_target_s = NAN;
  bool reached = false;
  EvaluationRow at_target;
};

QualityFigures quality_of(const RunRecord& record, const Job& job) {
  QualityFigures figures;
  for (const NodeReport& node : record.nodes) {
    if (node.test_quality >= 0) figures.final_test = node.test_quality;
    if (&node != scribe_of(record.nodes)) continue;
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
        figures.at_target = row;
        figures.to_target_s = row.time_s + (record.virtual_clock ? 0 : record.data_s);
      }
    }
  }
  return figures;
}

json quality_json(const RunRecord& record, const Job& job, const QualityFigures& figures) {
  return {{"metric", record.metric},
          {"higher_is_better", record.higher_is_better},
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

// What turns this run's seconds into those of nodes of the reference speed.
double normalisation(const RunRecord& record) {
  if (record.nodes.empty()) return 1;
  return sum(record.nodes, [](const NodeReport& n) { return n.reference_flops; }) /
         static_cast<double>(record.nodes.size()) / kReferenceFlops;
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

std::vector<int> lost_nodes(const RunRecord& record) {
  std::vector<int> lost;
  for (size_t rank = 0; rank < record.outcomes.size(); ++rank)
    if (record.outcomes[rank].kind == NodeOutcome::Kind::kLost)
      lost.push_back(static_cast<int>(rank));
  return lost;
}

json to_json(const RunRecord& record, Job& job) {
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
      {"seed", job.task.seed},
      {"obtained", record.virtual_clock ? "simulated" : "measured"},
      {"quality", quality_json(record, job, quality)},
      {"time", time_json(record, quality)},
      {"peak_memory_bytes",
       largest(record.nodes, [](const NodeReport& n) { return n.peak_memory_bytes; })},
      {"utilisation", utilisation(record)},
      {"steps", largest(record.nodes, [](const NodeReport& n) { return double(n.steps); })},
      {"samples", largest(record.nodes, [](const NodeReport& n) { return double(n.samples); })},
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
      {"energy", {{"joules", record.joules}, {"method", record.energy_method}}},
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
  if (record.status == "done")
    for (const int rank : lost_nodes(record))
      text += fmt::format("lost      rank {}; the others went on without it\n", rank);
  if (!std::isnan(quality.best)) {
    text += fmt::format("quality   {} {:.4f} on validation (best)", record.metric, quality.best);
    if (!std::isnan(quality.final_test))
      text += fmt::format(", {:.4f} on test", quality.final_test);
    text += "\n";
  }
  if (job.task.target > 0 && !std::isnan(quality.best))  // nothing measured, nothing missed
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
  for (const NodeReport& node : record.nodes)
    for (const auto& [name, value] : node.extra.figures)
      text += fmt::format("figure    {} {:.4g}\n", name, value);
  return text + fmt::format("run       {}\n", record.folder);
}

}  // namespace tutti

#include "jobs/run_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/described_json.h"
#include "core/error.h"
#include "fabric/cluster.h"
#include "jobs/perspective.h"
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

RecordedTime recorded_time(const RunRecord& record, const QualityFigures& figures) {
  const auto mean = [&](auto of) {
    return record.nodes.empty() ? 0
                                : sum(record.nodes, of) / static_cast<double>(record.nodes.size());
  };
  return {.clock = record.virtual_clock ? "virtual" : "wall",
          .startup_s = record.startup_s,
          .data_s = record.data_s,
          .to_target_s = known(figures.to_target_s),
          .total_s = total_seconds(record),
          .wall_s = record.wall_s,
          .normalised = normalisation(record),
          .relative_speed = relative_speed(record),
          .series_count_data = true,
          .compute_s = mean([](const NodeReport& n) { return n.compute_s; }),
          .communicate_s = mean([](const NodeReport& n) { return n.communicate_s; }),
          .aggregate_s = mean([](const NodeReport& n) { return n.aggregate_s; }),
          .wait_s = mean([](const NodeReport& n) { return n.wait_s; }),
          .other_s = mean([](const NodeReport& n) { return n.other_s; }),
          .cpu_s = sum(record.nodes, [](const NodeReport& n) { return n.cpu_s; })};
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
double total_samples(const RunRecord& record) {
  return std::max(static_cast<double>(record.resumed.samples),
                  largest(record.nodes, [](auto& n) { return static_cast<double>(n.samples); }));
}

// The steps of a run are those of its workers, unless somebody else counts them. A worker may take
// more than the run has batches, for one that is slow or lost. Then the samples of all say how far
// the run has come.
double total_steps(const RunRecord& record) {
  const bool all_count = record.recorder < record.workers;
  const double own = largest(record.nodes, [&](const NodeReport& node) {
    return all_count || node.rank == record.recorder ? static_cast<double>(node.steps) : 0;
  });
  const double steps = static_cast<double>(record.resumed.steps) + own;
  const Course& course = record.course;
  if (!course.counts_by_samples(static_cast<int64_t>(steps))) return steps;
  return static_cast<double>(course.step_at(static_cast<int64_t>(total_samples(record))));
}

// The speed is of this run alone, as its time is.
double samples_per_second(const RunRecord& record) {
  const double samples = total_samples(record) - static_cast<double>(record.resumed.samples);
  const double seconds = total_seconds(record);
  return seconds > 0 ? samples / seconds : 0;
}

RecordedTaxonomy recorded(const Taxonomy& taxonomy) {
  return {.structure = std::string(taxonomy.structure),
          .parallelism = std::string(taxonomy.parallelism),
          .optimisation = std::string(taxonomy.optimisation),
          .timing = std::string(word_of(taxonomy.timing)),
          .pattern = std::string(taxonomy.pattern),
          .data = std::string(taxonomy.data),
          .stragglers = std::string(taxonomy.stragglers),
          .communication = std::string(taxonomy.communication),
          .computation = std::string(taxonomy.computation)};
}

RecordedRun heading_of(const RunRecord& record, const Job& job) {
  RecordedRun run;
  run.name = job.name;
  run.status = word_of(record.status);
  run.error = record.error;
  run.exit_code = record.exit_code;
  run.strategy = job.strategy_kind;
  run.taxonomy = recorded(job.strategy->taxonomy());
  run.fabric = word_of(job.cluster.fabric);
  run.workers = job.cluster.workers;
  run.plan = record.plan;
  run.machines = record.machines;
  run.seed = job.task.seed;
  run.obtained = word_of(record.virtual_clock ? Obtained::kSimulated : Obtained::kMeasured);
  run.task = record.task;
  run.versions = library_versions();
  run.machine = machine_description();
  run.folder = record.folder;
  return run;
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

RecordedRun recorded(const RunRecord& record, const Job& job) {
  const QualityFigures quality = quality_of(record, job);
  const Freshness fresh = freshness_of_all(record.nodes);
  RecordedRun run = heading_of(record, job);
  run.quality = recorded_quality(record, job, quality);
  run.time = recorded_time(record, quality);
  run.prediction = recorded_prediction(record, job);
  run.peak_memory_bytes =
      largest(record.nodes, [](const NodeReport& n) { return n.peak_memory_bytes; });
  run.utilisation = utilisation(record);
  run.steps = static_cast<uint64_t>(total_steps(record));
  run.samples = static_cast<uint64_t>(total_samples(record));
  if (quality.reached) {
    run.steps_to_target = quality.at_target.step;
    run.samples_to_target = quality.at_target.samples;
  }
  run.samples_per_s = samples_per_second(record);
  run.bytes_sent = static_cast<uint64_t>(
      sum(record.nodes, [](const NodeReport& n) { return double(n.bytes_sent); }));
  run.messages = static_cast<uint64_t>(
      sum(record.nodes, [](const NodeReport& n) { return double(n.messages); }));
  run.staleness = {fresh.staleness_mean, fresh.staleness_max, fresh.histogram};
  run.age_s = {fresh.age_mean_s, fresh.age_max_s};
  run.update_order = fresh.disorder;
  run.counters = counters_of_all(record.nodes);
  run.energy = {record.joules, record.energy_method, record.energy_parts, record.kwh};
  run.co2e = {record.co2e.value, record.co2e.method};
  run.cost = {record.cost.on_demand.value, job.footprint.currency, record.cost.on_demand.method,
              record.cost.spot};
  for (const NodeReport& node : record.nodes)  // one that came back may not have them
    if (run.parameters_sha256.empty()) run.parameters_sha256 = node.parameters_sha256;
  run.evaluations =
      learning_curve(record.evaluations, record.nodes, record.virtual_clock ? 0 : record.data_s);
  run.nodes = node_rows(record.nodes);
  run.links = link_rows(record.nodes);
  run.timeline = step_timeline(record.nodes);
  run.extra = extra_of(record.nodes);
  for (const int rank : lost_nodes(record)) run.lost.push_back(rank);
  if (record.resumed.steps > 0) run.resumed = {record.resumed.steps, record.resumed.samples};
  return run;
}

json to_json(const RunRecord& record, const Job& job) { return json_of(recorded(record, job)); }

std::string json_text(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

std::optional<RecordedPrediction> recorded_prediction(const RunRecord& record, const Job& job) {
  if (!record.prediction || record.resumed.steps > 0) return std::nullopt;
  const QualityFigures quality = quality_of(record, job);
  const double data_s = record.virtual_clock ? 0 : record.data_s;  // no prediction includes it
  return held_against(*record.prediction,
                      quality.reached ? std::optional(quality.to_target_s - data_s) : std::nullopt,
                      record.virtual_clock);
}

std::string summary(const RunRecord& record, const Job& job) {
  const QualityFigures quality = quality_of(record, job);
  const char* clock = record.virtual_clock ? "virtual" : "wall";
  std::string text;
  if (record.exit_code != 0)  // whoever prints this says why on standard error
    text += fmt::format("status    {}\n", word_of(record.status));
  else if (record.status != RunStatus::kDone)
    text += fmt::format("{}: {}\n", word_of(record.status), record.error);
  if (record.status == RunStatus::kDone)
    for (const int rank : lost_nodes(record))
      text += fmt::format("lost      rank {}; the others went on without it\n", rank);
  text += quality_text(record, job, quality);
  if (record.resumed.steps > 0)
    text += fmt::format("resumed   at step {} of {}; time and speed are of the steps since then\n",
                        record.resumed.steps, total_steps(record));
  if (!record.nodes.empty()) {
    const RecordedTime time = recorded_time(record, quality);
    const auto seconds = [](double value) { return human_quantity(value, Unit::kSeconds); };
    text += fmt::format(
        "time      {} {}: compute {}, aggregate {}, communicate {}, wait {} (mean of nodes)\n",
        seconds(total_seconds(record)), clock, seconds(*time.compute_s), seconds(*time.aggregate_s),
        seconds(*time.communicate_s), seconds(*time.wait_s));
    const double speed = samples_per_second(record);
    text += fmt::format(
        "speed     {} samples/s, {} sent in {} messages, {} ({})\n",
        speed < 100 ? fmt::format("{:.3g}", speed) : fmt::format("{:.0f}", speed),
        human_quantity(sum(record.nodes, [](const NodeReport& n) { return double(n.bytes_sent); }),
                       Unit::kBytes),
        sum(record.nodes, [](const NodeReport& n) { return double(n.messages); }),
        human_quantity(record.joules, Unit::kJoules),
        record.energy_method.substr(0, record.energy_method.find(' ')));
    text += fmt::format("footprint {}\n", in_perspective({.kwh = record.kwh,
                                                          .co2e_grams = record.co2e.value,
                                                          .cost = record.cost.on_demand.value,
                                                          .spot_cost = record.cost.spot,
                                                          .currency = job.footprint.currency}));
  }
  if (const auto prediction = recorded_prediction(record, job))
    text += fmt::format("predicted {}\n", in_words(*prediction, record.virtual_clock));
  for (const NodeReport& node : record.nodes)
    for (const auto& [name, value] : node.extra.figures)
      text += fmt::format("figure    {} {:.4g}\n", name, value);
  return text + fmt::format("run       {}\n", record.folder);
}

}  // namespace tutti

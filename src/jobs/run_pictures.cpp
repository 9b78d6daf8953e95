#include "jobs/run_pictures.h"

#include <algorithm>
#include <cmath>

namespace tutti {
namespace {

constexpr size_t kMostLinks = 20000;  // an all-to-all of 100 nodes has half as many

// Bytes that a node had sent by `time_s`, between the points it noted.
double sent_by(const NodeReport& node, double time_s) {
  double before_s = 0, before_bytes = 0;
  for (const auto& [at_s, bytes] : node.traffic) {
    if (at_s >= time_s) {
      const double share = at_s > before_s ? (time_s - before_s) / (at_s - before_s) : 1;
      return before_bytes + share * (static_cast<double>(bytes) - before_bytes);
    }
    before_s = at_s;
    before_bytes = static_cast<double>(bytes);
  }
  return before_bytes;
}

}  // namespace

void add_reported(std::vector<EvaluationRow>& evaluations, const std::vector<NodeReport>& nodes) {
  for (const NodeReport& node : nodes)
    for (const EvaluationRow& row : node.evaluations)
      if (evaluations.empty() || row.samples > evaluations.back().samples)
        evaluations.push_back(row);
}

std::map<std::string, int64_t> counters_of_all(const std::vector<NodeReport>& nodes) {
  std::map<std::string, int64_t> totals;
  for (const NodeReport& node : nodes)
    for (const auto& [name, count] : node.counters) totals[name] += count;
  return totals;
}

std::optional<double> known(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::vector<RecordedEvaluation> learning_curve(const std::vector<EvaluationRow>& evaluations,
                                               const std::vector<NodeReport>& nodes,
                                               double data_s) {
  std::vector<RecordedEvaluation> curve;
  for (const EvaluationRow& row : evaluations) {
    double bytes = 0;
    for (const NodeReport& node : nodes) bytes += sent_by(node, row.time_s);
    curve.push_back({.step = row.step,
                     .time_s = row.time_s + data_s,
                     .epoch = row.epoch,
                     .samples = row.samples,
                     .bytes = std::round(bytes),
                     .loss = known(row.loss),
                     .quality = known(row.quality)});
  }
  return curve;
}

std::vector<RecordedNode> node_rows(const std::vector<NodeReport>& nodes) {
  std::vector<RecordedNode> rows;
  for (const NodeReport& node : nodes)
    rows.push_back({.rank = node.rank,
                    .role = node.role,
                    .total_s = node.total_s,
                    .compute_s = node.compute_s,
                    .communicate_s = node.communicate_s,
                    .aggregate_s = node.aggregate_s,
                    .wait_s = node.wait_s,
                    .other_s = node.other_s,
                    .cpu_s = node.cpu_s,
                    .utilisation = node.total_s > 0
                                       ? (node.compute_s + node.aggregate_s) / node.total_s
                                       : 0,
                    .peak_memory_bytes = node.peak_memory_bytes,
                    .reference_flops = node.reference_flops,
                    .bytes_sent = node.bytes_sent,
                    .messages = node.messages,
                    .steps = node.steps,
                    .samples = node.own_samples,
                    .staleness_mean = node.freshness.staleness_mean,
                    .staleness_max = node.freshness.staleness_max,
                    .sha256 = node.parameters_sha256});
  return rows;
}

std::vector<RecordedLink> link_rows(const std::vector<NodeReport>& nodes) {
  std::vector<RecordedLink> rows;
  for (const NodeReport& node : nodes)
    for (const auto& [peer, bytes] : node.links)
      if (rows.size() < kMostLinks) rows.push_back({node.rank, peer, bytes});
  return rows;
}

std::vector<RecordedTimeline> step_timeline(const std::vector<NodeReport>& nodes) {
  std::vector<RecordedTimeline> rows;
  const auto first = std::find_if(nodes.begin(), nodes.end(),
                                  [](const NodeReport& node) { return !node.step_ends.empty(); });
  if (first == nodes.end()) return rows;
  const std::vector<double>& ends = first->step_ends;
  const double begin_s =
      ends.size() > 1 ? ends[0] : (first->timeline.empty() ? 0 : first->timeline[0].begin_s);
  const double end_s = ends.size() > 1 ? ends[1] : ends[0];
  for (const NodeReport& node : nodes) {
    RecordedTimeline row{node.rank, node.role, {}};
    for (const Interval& interval : node.timeline) {
      const double from_s = std::max(interval.begin_s, begin_s) - begin_s;
      const double to_s = std::min(interval.end_s, end_s) - begin_s;
      if (from_s < to_s) row.intervals.push_back({name_of(interval.phase), from_s, to_s});
    }
    if (!row.intervals.empty()) rows.push_back(std::move(row));
  }
  return rows;
}

RecordedExtra extra_of(const std::vector<NodeReport>& nodes) {
  RecordedExtra result;
  for (const NodeReport& node : nodes) {
    for (const auto& [name, series] : node.extra.series) {
      auto& points = result.series[name];
      points.insert(points.end(), series.points.begin(), series.points.end());
    }
    for (const auto& [name, value] : node.extra.figures) result.figures[name] = value;
    for (const auto& [name, table] : node.extra.tables)
      result.tables[name] = {table.columns, table.rows};
  }
  return result;
}

Freshness freshness_of_all(const std::vector<NodeReport>& nodes) {
  Freshness all;
  for (const NodeReport& node : nodes) {
    const Freshness& part = node.freshness;
    const auto weight = static_cast<double>(part.count);
    all.count += part.count;
    all.staleness_mean += weight * part.staleness_mean;
    all.age_mean_s += weight * part.age_mean_s;
    all.disorder += weight * part.disorder;
    all.staleness_max = std::max(all.staleness_max, part.staleness_max);
    all.age_max_s = std::max(all.age_max_s, part.age_max_s);
    if (all.histogram.size() < part.histogram.size()) all.histogram.resize(part.histogram.size());
    for (size_t i = 0; i < part.histogram.size(); ++i) all.histogram[i] += part.histogram[i];
  }
  if (all.count == 0) return all;
  const auto count = static_cast<double>(all.count);
  all.staleness_mean /= count;
  all.age_mean_s /= count;
  all.disorder /= count;
  return all;
}

}  // namespace tutti

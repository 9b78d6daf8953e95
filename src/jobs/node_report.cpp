#include "jobs/node_report.h"

#include <fmt/format.h>

#include "core/described_json.h"
#include "core/error.h"
#include "core/printable.h"

namespace tutti {
namespace {

constexpr int64_t kPhaseCount = static_cast<int64_t>(Phase::kCommunicate) + 1;

void visit_figures(RecordVisitor& v, NodeReport& r) {
  v.field("total_s", r.total_s, "Seconds of training, evaluation included");
  v.field("compute_s", r.compute_s, "Seconds of computing");
  v.field("communicate_s", r.communicate_s, "Seconds of exchanging");
  v.field("aggregate_s", r.aggregate_s, "Seconds of summing and updating");
  v.field("wait_s", r.wait_s, "Seconds of waiting for a peer");
  v.field("other_s", r.other_s, "Seconds of anything else");
  v.field("cpu_s", r.cpu_s, "Seconds of its processor");
  v.field("joules", r.joules, "Energy of its machine; negative: nothing measures it");
  v.field("energy_method", r.energy_method, "How the energy was obtained");
  v.field("peak_memory_bytes", r.peak_memory_bytes, "Memory, at most");
  v.field("reference_flops", r.reference_flops, "Speed: of the reference kernel, or declared");
  v.field("bytes_sent", r.bytes_sent, "Payload that it sent");
  v.field("messages", r.messages, "Messages that it sent");
  v.field("steps", r.steps, "Steps that it took");
  v.field("samples", r.samples, "Samples of all workers, as far as it knows");
  v.field("own_samples", r.own_samples, "Samples that it trained on");
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

void visit(RecordVisitor& v, Freshness& f) {
  v.field("count", f.count, "Updates that it applied");
  v.field("staleness_mean", f.staleness_mean, "Staleness, mean");
  v.field("staleness_max", f.staleness_max, "Staleness, largest");
  v.field("age_mean_s", f.age_mean_s, "Age, mean");
  v.field("age_max_s", f.age_max_s, "Age, largest");
  v.field("histogram", f.histogram,
          "Number of updates of staleness 0, 1, ..., 62, and of 63 and more");
  v.field("disorder", f.disorder, "Share of pairs of updates applied in reverse order");
}

void visit_value(RecordVisitor& v, Extra::Series& series) { describe(v, series.points); }

void visit(RecordVisitor& v, Extra::Table& table) {
  v.field("columns", table.columns, "Names of the columns");
  v.field("rows", table.rows, "A number for each column");
}

void visit(RecordVisitor& v, Extra& extra) {
  v.field("series", extra.series, "Values over the steps: [step, value]");
  v.field("figures", extra.figures, "Single figures");
  v.field("tables", extra.tables, "Tables");
}

void visit_value(RecordVisitor& v, EvaluationRow& row) {
  v.row("[step, time_s, epoch, samples, loss, quality]", 6, [&] {
    v.item(row.step);
    v.item(row.time_s);
    v.item(row.epoch);
    v.item(row.samples);
    v.element([&] { v.number_or_null(row.loss); });
    v.element([&] { v.number_or_null(row.quality); });
  });
}

void visit_value(RecordVisitor& v, Interval& interval) {
  v.row("[phase, from, to]", 3, [&] {
    auto phase = static_cast<int64_t>(interval.phase);
    v.item(phase);
    v.item(interval.begin_s);
    v.item(interval.end_s);
    v.require(phase >= 0 && phase < kPhaseCount, "", "");
    if (v.reads()) interval.phase = static_cast<Phase>(phase);
  });
}

void visit(RecordVisitor& v, NodeReport& r) {
  v.field("rank", r.rank, "Rank of the node");
  v.field("role", r.role, "Role of the node");
  visit_figures(v, r);
  v.field("losses", r.losses, "Loss of its share of each batch");
  v.field("shares", r.shares, "Samples in each share");
  v.require(r.shares.size() == r.losses.size(), "losses",
            fmt::format("are {}, but there are the samples of {}", r.losses.size(),
                        r.shares.size()));
  v.field("freshness", r.freshness, "Ages of the updates that it applied");
  v.field("counters", r.counters, "Events that the strategy counts");
  v.field("test_quality", r.test_quality, "Quality on test samples; negative: not measured");
  v.field("sha256", r.parameters_sha256, "Checksum of its parameters at the end");
  v.field("evaluations", r.evaluations, "Measurements on validation samples");
  v.field("links", r.links, "[rank, bytes sent to it]");
  v.field("traffic", r.traffic, "[seconds, bytes sent by then]");
  v.field("step_ends", r.step_ends, "When its first steps ended");
  v.field("timeline", r.timeline, "What it did during those steps");
  v.field("extra", r.extra, "What only some strategies have to say");
}

std::string to_text(const NodeReport& report) { return json_of(report).dump(); }

NodeReport node_report(const std::string& text) {
  constexpr const char* kUnreadable = "a node sent a report that cannot be read: {}";
  try {
    auto report = described_by<NodeReport>(nlohmann::json::parse(text));
    // What comes from another machine may be shown on this terminal.
    report.role = printable(report.role);
    report.energy_method = printable(report.energy_method);
    std::map<std::string, double> figures;
    for (const auto& [name, value] : report.extra.figures) figures[printable(name)] = value;
    report.extra.figures = std::move(figures);
    return report;
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format(kUnreadable, error.what()));
  } catch (const Mismatch& mismatch) {
    throw DataError(
        fmt::format(kUnreadable, fmt::format("\"{}\" {}", mismatch.place, mismatch.problem)));
  }
}

}  // namespace tutti

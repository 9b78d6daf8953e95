#include "jobs/recorded_run.h"

#include <fmt/format.h>

#include "core/described_json.h"
#include "core/error.h"
#include "core/shallow_json.h"
#include "jobs/record_schema.h"
#include "jobs/run_folder.h"

namespace tutti {
namespace {

constexpr Presence kMayMiss = Presence::kMayMiss, kWhenKnown = Presence::kWhenKnown,
                   kNeeded = Presence::kNeeded;

[[noreturn]] void refuse_record(const std::string& path, const std::string& what) {
  throw DataError(
      fmt::format("{}: is damaged: {}; remove the folder and run it again", path, what));
}

void visit_heading(RecordVisitor& v, RecordedRun& r) {
  v.field("schema", r.schema, "Version of this description: 2");
  v.field("name", r.name, "Name of the job", kMayMiss);
  v.field("status", r.status,
          "`done`, `collapsed`, `diverged`, `peer lost`, `interrupted` or `failed`");
  v.field("error", r.error, "Why the run did not end as it should", kWhenKnown);
  v.field("exit_code", r.exit_code, "Exit code of `tutti train`", kMayMiss);
  v.field("strategy", r.strategy, "`strategy.kind` of the job");
  v.field("taxonomy", r.taxonomy, "Place of the strategy among all");
  v.field("fabric", r.fabric, "`cluster.fabric` of the job");
  v.field("workers", r.workers, "Number of workers; other roles come on top");
  v.field("plan", r.plan, "What the strategy planned for the cluster; empty: nothing to plan",
          kMayMiss);
  v.field("machines", r.machines, "Number of machines that the price counts");
  v.field("seed", r.seed, "`task.seed` of the job");
  v.field("obtained", r.obtained, "`measured` on a wall clock or `simulated` on a virtual one");
  v.field("task", r.task, "Identity of the task, see docs/definitions.md", kWhenKnown);
}

void visit_totals(RecordVisitor& v, RecordedRun& r) {
  v.field("quality", r.quality, "Quality along the way and at the end, see docs/definitions.md");
  v.field("time", r.time, "Seconds, see docs/definitions.md");
  v.field("prediction", r.prediction, "What `tutti advise --write` had predicted of this run",
          kWhenKnown);
  v.field("peak_memory_bytes", r.peak_memory_bytes, "Memory of the node that used most");
  v.field("utilisation", r.utilisation, "Share of their time in which nodes compute or aggregate");
  v.field("steps", r.steps, "Steps, with those of the run that this one resumes", kNeeded);
  v.field("samples", r.samples, "Samples that all workers trained on, likewise");
  v.field("steps_to_target", r.steps_to_target, "Steps until the target was measured");
  v.field("samples_to_target", r.samples_to_target, "Samples until the target was measured");
  v.field("samples_per_s", r.samples_per_s, "Samples of this run / `time.total_s`");
  v.field("bytes_sent", r.bytes_sent, "Payload that all nodes sent");
  v.field("messages", r.messages, "Messages that all nodes sent");
  v.field("staleness", r.staleness, "Updates that gradients were computed without");
  v.field("age_s", r.age_s, "Seconds from reading parameters to applying a gradient on them");
  v.field("update_order", r.update_order, "Share of pairs of updates applied in reverse order",
          kNeeded);
  v.field("counters", r.counters, "Events that the strategy counts", kMayMiss);
  v.field("energy", r.energy, "Energy of the machines");
  v.field("co2e", r.co2e, "Emissions by that energy");
  v.field("cost", r.cost, "Price of the machines for that time");
  v.field("parameters_sha256", r.parameters_sha256,
          "Checksum of the parameters at the end; empty: none are kept", kMayMiss);
}

constexpr const char* kSquaredError = "mse";  // the one metric of which less is better

// Adds what schema 2 has and schema 1 had not: of a record of schema 1 it is not known.
void complete_schema_1(nlohmann::json& record) {
  const nlohmann::json unknown = {{"age_s", {{"mean", nullptr}, {"max", nullptr}}},
                                  {"update_order", nullptr},
                                  {"co2e", {{"grams", nullptr}}},
                                  {"cost", {{"amount", nullptr}}},
                                  {"links", nlohmann::json::array()},
                                  {"timeline", nlohmann::json::array()}};
  for (const auto& [key, value] : unknown.items())
    if (!record.contains(key)) record[key] = value;
  // All nodes were workers, and the metric said which values are better.
  if (record.contains("nodes") && record["nodes"].is_array())
    for (nlohmann::json& node : record["nodes"])
      if (node.is_object()) node["role"] = "worker";
  if (record.contains("quality") && record["quality"].is_object())
    record["quality"]["higher_is_better"] =
        record["quality"].value("metric", nlohmann::json()) != nlohmann::json(kSquaredError);
}

}  // namespace

void visit(RecordVisitor& v, RecordedTaxonomy& t) {
  v.field("structure", t.structure, "`single node`, `client-server` or `peer-to-peer`", kMayMiss);
  v.field("parallelism", t.parallelism, "`none`, `data`, `model` or `hybrid`", kMayMiss);
  v.field("optimisation", t.optimisation, "`centralised` or `decentralised`", kMayMiss);
  v.field("timing", t.timing, "`synchronous`, `asynchronous` or `bounded`", kMayMiss);
  v.field("pattern", t.pattern, "Who exchanges with whom", kMayMiss);
  v.field("data", t.data, "Who sees which samples", kMayMiss);
  v.field("stragglers", t.stragglers, "What a slow node does to the others", kMayMiss);
  v.field("communication", t.communication, "What a node sends in a step", kMayMiss);
  v.field("computation", t.computation, "What a node computes in a step", kMayMiss);
}

void visit(RecordVisitor& v, RecordedQuality& q) {
  v.field("metric", q.metric, "`accuracy` or `mse`", kMayMiss);
  v.field("higher_is_better", q.higher_is_better, "Whether more of the metric is better", kMayMiss);
  v.field("best", q.best, "Best on validation samples");
  v.field("last", q.last, "Last on validation samples");
  v.field("final", q.final_test, "On test samples at the end");
  // These repeat the values under names that say which samples they are of.
  auto best = q.best, last = q.last, final_test = q.final_test;
  v.field("validation_best", best, "`best` again");
  v.field("validation_final", last, "`last` again");
  v.field("test_final", final_test, "`final` again");
  v.field("target", q.target, "`task.target` of the job");
  v.field("reached", q.reached, "Whether the target was measured", kMayMiss);
  v.field("at_chance", q.at_chance, "Whether the run learnt nothing", kMayMiss);
  v.field("remedy", q.remedy, "The setting to try where it learnt nothing", Presence::kWhenKnown);
}

void visit(RecordVisitor& v, RecordedTime& t) {
  v.field("clock", t.clock, "`wall` or `virtual`", kMayMiss);
  v.field("startup_s", t.startup_s, "Loading libraries and starting nodes; not in the total");
  v.field("data_s", t.data_s, "Reading the data; in the total where the clock is `wall`");
  v.field("to_target_s", t.to_target_s, "Until the target was measured");
  v.field("total_s", t.total_s, "Until training ended on the last node");
  v.field("wall_s", t.wall_s, "That the run took here, whatever its clock");
  v.field("normalised", t.normalised, "Factor to the seconds of nodes of the reference speed");
  v.field("relative_speed", t.relative_speed, "Mean speed of the nodes / the reference speed");
  v.field("series_count_data", t.series_count_data,
          "Whether times in series.csv and evaluations.csv include `data_s`; older ones do not",
          kMayMiss);
  v.field("compute_s", t.compute_s, "Computing, mean over nodes");
  v.field("communicate_s", t.communicate_s, "Exchanging, mean over nodes");
  v.field("aggregate_s", t.aggregate_s, "Summing and updating, mean over nodes");
  v.field("wait_s", t.wait_s, "Waiting for a peer, mean over nodes");
  v.field("other_s", t.other_s, "Anything else, mean over nodes", kWhenKnown);
  v.field("cpu_s", t.cpu_s, "Processor time of all nodes");
}

void visit(RecordVisitor& v, RecordedPrediction& p) {
  v.field("predicted_s", p.predicted_s, "Time to target as it was predicted");
  v.field("error", p.error, "Half the width of its interval of 90 %, relative");
  v.field("took_s", p.took_s, "Time to target, without reading the data; null: it was missed");
  v.field("off", p.off, "How much longer that is, as a share of the prediction");
  v.field("within", p.within, "Whether it lies in the interval");
}

void visit(RecordVisitor& v, RecordedStaleness& s) {
  v.field("mean", s.mean, "Mean over updates");
  v.field("max", s.max, "Largest");
  v.field("histogram", s.histogram,
          "Number of updates of staleness 0, 1, ..., 62, and of 63 and more", kMayMiss);
}

void visit(RecordVisitor& v, RecordedAge& a) {
  v.field("mean", a.mean, "Mean over updates");
  v.field("max", a.max, "Largest");
}

void visit(RecordVisitor& v, EnergyPart& part) {
  v.field("of", part.of, "`host 0`, `link of host 0`, `uplink of rack 0`, `node 0`, ...");
  v.field("ranks", part.ranks, "Nodes on that host or rack");
  v.field("joules", part.joules, "Its energy");
}

void visit(RecordVisitor& v, RecordedEnergy& e) {
  v.field("joules", e.joules, "Energy: the sum of the parts");
  v.field("method", e.method, "How it was obtained", kMayMiss);
  v.field("parts", e.parts, "What took it", kMayMiss);
  v.field("kwh", e.kwh, "Energy x `footprint.pue`, in kWh", kWhenKnown);
}

void visit(RecordVisitor& v, RecordedCo2e& c) {
  v.field("grams", c.grams, "CO2e");
  v.field("method", c.method, "How it was obtained", kMayMiss);
}

void visit(RecordVisitor& v, RecordedCost& c) {
  v.field("amount", c.amount, "Price in the currency");
  v.field("currency", c.currency, "`footprint.currency` of the job", kMayMiss);
  v.field("method", c.method, "How it was obtained", kMayMiss);
  v.field("spot_amount", c.spot_amount, "Price where machines may be taken away", kWhenKnown);
}

void visit(RecordVisitor& v, RecordedEvaluation& e) {
  v.field("step", e.step, "Steps so far");
  v.field("time_s", e.time_s, "Seconds so far, as time to target counts them");
  v.field("epoch", e.epoch, "Passes over the training samples so far");
  v.field("samples", e.samples, "Samples of all workers so far");
  v.field("bytes", e.bytes, "Bytes that all nodes sent so far");
  v.field("loss", e.loss, "Loss on validation samples");
  v.field("quality", e.quality, "Quality on validation samples");
}

void visit(RecordVisitor& v, RecordedNode& n) {
  v.field("rank", n.rank, "Rank; workers come first");
  v.require(n.rank >= 0, "rank", "is negative, not a rank");
  v.field("role", n.role, "`worker`, `server`, ...", kMayMiss);
  v.field("total_s", n.total_s, "Seconds of training");
  v.field("compute_s", n.compute_s, "Seconds of computing");
  v.field("communicate_s", n.communicate_s, "Seconds of exchanging");
  v.field("aggregate_s", n.aggregate_s, "Seconds of summing and updating");
  v.field("wait_s", n.wait_s, "Seconds of waiting for a peer");
  v.field("other_s", n.other_s, "Seconds of anything else", kWhenKnown);
  v.field("cpu_s", n.cpu_s, "Seconds of its processor");
  v.field("utilisation", n.utilisation, "Share of its time in which it computes or aggregates");
  v.field("peak_memory_bytes", n.peak_memory_bytes, "Memory, at most");
  v.field("reference_flops", n.reference_flops, "Speed: of the reference kernel, or declared");
  v.field("bytes_sent", n.bytes_sent, "Payload that it sent");
  v.field("messages", n.messages, "Messages that it sent");
  v.field("steps", n.steps, "Steps that it took");
  v.field("samples", n.samples, "Samples that it trained on");
  v.field("staleness_mean", n.staleness_mean, "Staleness of updates that it applied, mean");
  v.field("staleness_max", n.staleness_max, "Staleness of updates that it applied, largest");
  v.field("sha256", n.sha256, "Checksum of its parameters at the end; empty: it has none",
          kMayMiss);
}

void visit_value(RecordVisitor& v, RecordedLink& link) {
  v.row("[from rank, to rank, bytes]", 3, [&] {
    v.item(link.from);
    v.item(link.to);
    v.item(link.bytes);
  });
}

void visit_value(RecordVisitor& v, RecordedInterval& i) {
  v.row("[kind, from, to] in order of time", 3, [&] {
    v.item(i.kind);
    v.item(i.from_s);
    v.item(i.to_s);
    v.require(i.from_s <= i.to_s, "", "");
  });
}

void visit(RecordVisitor& v, RecordedTimeline& t) {
  v.field("rank", t.rank, "Rank of the node");
  v.field("role", t.role, "Role of the node", kMayMiss);
  v.field("intervals", t.intervals,
          "`compute`, `communicate`, `aggregate`, `wait` or `other`, in seconds", kMayMiss);
}

void visit(RecordVisitor& v, RecordedTable& t) {
  v.field("columns", t.columns, "Names of the columns");
  v.field("rows", t.rows, "A number for each column");
  for (size_t i = 0; i < t.rows.size(); ++i)
    if (t.rows[i].size() != t.columns.size())
      v.require(false, fmt::format("rows[{}]", i), "is array, not a number for each column");
}

void visit(RecordVisitor& v, RecordedExtra& e) {
  v.field("series", e.series, "Values over the steps: [step, value]", kMayMiss);
  v.field("figures", e.figures, "Single figures", kMayMiss);
  v.field("tables", e.tables, "Tables", kMayMiss);
}

void visit(RecordVisitor& v, RecordedResume& r) {
  v.field("steps", r.steps, "Steps of the run that this one resumes");
  v.field("samples", r.samples, "Samples of the run that this one resumes");
}

void visit(RecordVisitor& v, RecordedRun& r) {
  visit_heading(v, r);
  visit_totals(v, r);
  v.field("evaluations", r.evaluations, "Measurements on validation samples");
  v.field("nodes", r.nodes, "One for each node that reported");
  for (size_t i = 0; i < r.nodes.size(); ++i)
    if (r.nodes[i].steps.value_or(-1) < 0)
      v.require(false, fmt::format("nodes[{}].steps", i), "is not a whole number");
  v.field("links", r.links, "Pairs of nodes that exchanged something; 20,000 at most");
  v.field("timeline", r.timeline, "What each node did during one step");
  v.field("extra", r.extra, "What only some strategies have to say", kMayMiss);
  v.field("lost", r.lost, "Ranks that did not see the end", kMayMiss);
  v.field("resumed", r.resumed, "The run that this one resumes", kWhenKnown);
  v.field("versions", r.versions, "What the program was built with");
  v.field("machine", r.machine, "Where it ran");
  v.field("folder", r.folder, "Folder of the run", kMayMiss);
}

RecordedRun read_recorded_run(const std::string& path) {
  using nlohmann::json;
  json record = parse_shallow_json(read_file(path));
  if (!record.is_object()) refuse_record(path, "it is not JSON");
  if (require_schema(record, {1, kRunSchema}, path, "run the job again with this one") == 1)
    complete_schema_1(record);
  try {
    return described_by<RecordedRun>(record);
  } catch (const Mismatch& mismatch) {
    refuse_record(path, fmt::format("\"{}\" {}", mismatch.place, mismatch.problem));
  }
}

}  // namespace tutti

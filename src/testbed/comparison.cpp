#include "testbed/comparison.h"

#include <fmt/format.h>

#include "core/described_json.h"
#include "core/error.h"
#include "jobs/record_schema.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr Presence kKnownOrNot = Presence::kMayMiss;

constexpr NamedFigure kFigures[] = {
    {"to_target_s", &ComparedFigures::to_target_s, "Time to target"},
    {"to_target_normalised_s", &ComparedFigures::to_target_normalised_s,
     "Time to target at the reference speed"},
    {"steps_to_target", &ComparedFigures::steps_to_target, "Steps to the target"},
    {"samples_to_target", &ComparedFigures::samples_to_target, "Samples to the target"},
    {"converged_s", &ComparedFigures::converged_s, "Time until training has converged"},
    {"converged_steps", &ComparedFigures::converged_steps, "Steps until training has converged"},
    {"total_s", &ComparedFigures::total_s, "Training time"},
    {"total_normalised_s", &ComparedFigures::total_normalised_s,
     "Training time at the reference speed"},
    {"wall_s", &ComparedFigures::wall_s, "Time that a run took here, whatever its clock"},
    {"cpu_s", &ComparedFigures::cpu_s, "Processor time of all nodes"},
    {"startup_s", &ComparedFigures::startup_s, "Loading libraries and starting nodes"},
    {"samples_per_s", &ComparedFigures::samples_per_s, "Samples / training time"},
    {"steps", &ComparedFigures::steps, "Steps"},
    {"bytes_total", &ComparedFigures::bytes_total, "Bytes that all nodes sent"},
    {"bytes_per_node", &ComparedFigures::bytes_per_node, "Bytes of the node that sent most"},
    {"messages_total", &ComparedFigures::messages_total, "Messages that all nodes sent"},
    {"messages_per_node", &ComparedFigures::messages_per_node,
     "Messages of the node that sent most"},
    {"peak_memory_bytes", &ComparedFigures::peak_memory_bytes, "Memory of the node that used most"},
    {"utilisation", &ComparedFigures::utilisation,
     "Share of their time in which nodes compute or aggregate"},
    {"energy_j", &ComparedFigures::energy_j, "Energy"},
    {"kwh", &ComparedFigures::kwh, "Energy x `footprint.pue`, in kWh"},
    {"co2e_g", &ComparedFigures::co2e_g, "CO2e"},
    {"cost", &ComparedFigures::cost, "Price in the currency"},
    {"spot_cost", &ComparedFigures::spot_cost, "Price where machines may be taken away"}};

constexpr NamedQuality kQualities[] = {
    {"best", &ComparedQuality::best, "Best on validation samples"},
    {"final", &ComparedQuality::final_test, "On test samples at the end"},
    {"at_equal_samples", &ComparedQuality::at_equal_samples,
     "On validation samples, after as many samples as every finished run has processed"},
    {"at_equal_time", &ComparedQuality::at_equal_time,
     "On validation samples, when the first finished run ended"},
    {"validation_best", &ComparedQuality::validation_best, "`best` again"},
    {"validation_final", &ComparedQuality::validation_final, "On validation samples at the end"},
    {"test_final", &ComparedQuality::test_final, "`final` again"}};

// Names a member that may be absent or null: then it is not known, which is fine.
template <class T>
void note(RecordVisitor& visitor, const char* key, T& value, const char* help) {
  visitor.field(key, value, help, kKnownOrNot);
}

void visit_setting(RecordVisitor& v, ComparedFigures& s) {
  note(v, "kind", s.kind, "`strategy.kind`");
  note(v, "settings", s.settings, "Settings of the strategy's own");
  v.require(s.settings.is_object(), "settings",
            fmt::format("is {}, not an object", s.settings.type_name()));
  note(v, "taxonomy", s.taxonomy, "Place of the strategy among all");
  note(v, "fabric", s.fabric, "`cluster.fabric`");
  note(v, "workers", s.workers, "Number of workers");
  note(v, "plan", s.plan, "What the strategy planned for the cluster; empty: nothing to plan");
  note(v, "machines", s.machines, "Number of machines that the price counts");
  note(v, "obtained", s.obtained, "`measured` or `simulated`");
  note(v, "shared_curve_of", s.shared_curve_of, "The strategy whose learning curve it shares");
  note(v, "same_run_as", s.same_run_as, "The strategy that took exactly the same run");
  note(v, "task", s.task, "Identity of its task");
  note(v, "machine", s.machine, "Where it ran");
  note(v, "missing", s.missing, "Which files of its runs could not be read whole");
  note(v, "seeds", s.seeds, "Seeds of its runs");
  note(v, "runs", s.runs, "Folders of its runs, in the order of the seeds");
  note(v, "statuses", s.statuses, "How each of its runs ended, in the order of the seeds");
}

[[noreturn]] void refuse_comparison(const std::string& where, const std::string& what) {
  throw DataError(
      fmt::format("{}: {}; the file is damaged or was changed by hand: write it anew "
                  "with `tutti compare`",
                  where, what));
}

}  // namespace

std::span<const NamedFigure> figures_over_seeds() { return kFigures; }
std::span<const NamedQuality> qualities_over_seeds() { return kQualities; }

void visit(RecordVisitor& v, Stat& stat) {
  v.field("mean", stat.mean, "Mean; null when it would hide a seed that has no value");
  v.field("min", stat.min, "Smallest");
  v.field("max", stat.max, "Largest");
  v.field("values", stat.values, "One for each seed; null: it has none");
}

void visit(RecordVisitor& v, ComparedQuality& quality) {
  for (const NamedQuality& each : kQualities)
    v.field(each.name, quality.*each.quality, each.meaning);
}

void visit(RecordVisitor& v, TimeSplit& split) {
  v.field("compute_s", split.compute_s, "Computing");
  v.field("communicate_s", split.communicate_s, "Exchanging");
  v.field("aggregate_s", split.aggregate_s, "Summing and updating");
  v.field("wait_s", split.wait_s, "Waiting for a peer");
  v.field("other_s", split.other_s, "The rest");
}

void visit(RecordVisitor& v, ComparedCurve& curve) {
  v.field("seed", curve.seed, "Seed of the run");
  note(v, "points", curve.points, "Measurements on validation samples");
}

void visit(RecordVisitor& v, ComparedSeries& series) {
  v.field("seed", series.seed, "Seed of the run");
  note(v, "step", series.step, "Number of the step");
  note(v, "time_s", series.time_s, "Seconds so far");
  note(v, "samples", series.samples, "Samples of all workers so far");
  note(v, "loss", series.loss, "Training loss; null: not known");
  const auto as_long = [&](const char* key, size_t length) {
    if (length == series.loss.size() || length == 0) return;
    v.require(false, key,
              fmt::format("has {} values, but there are {} losses", length, series.loss.size()));
  };
  as_long("step", series.step.size());
  as_long("time_s", series.time_s.size());
  as_long("samples", series.samples.size());
}

void visit(RecordVisitor& v, ComparedFigures& s) {
  v.field("name", s.name, "Name, unique in this comparison");
  v.field("status", s.status, "`done`, or how a run ended that did not end well");
  note(v, "error", s.error, "Why that run did not end as it should");
  visit_setting(v, s);
  note(v, "reached", s.reached, "Number of seeds that reached the target");
  v.field("remedy", s.remedy, "The setting to try where a seed learnt nothing",
          Presence::kWhenKnown);
  note(v, "quality", s.quality, "Quality over the seeds");
  for (const NamedFigure& each : kFigures) v.field(each.name, s.*each.figure, each.meaning);
  note(v, "energy_method", s.energy_method, "How the energy was obtained");
  note(v, "co2e_method", s.co2e_method, "How the CO2e was obtained");
  note(v, "cost_method", s.cost_method, "How the price was obtained");
  note(v, "currency", s.currency, "Currency of the price");
  note(v, "time_split", s.time_split, "Seconds by phase, mean over nodes and seeds");
  note(v, "staleness", s.staleness, "Updates that gradients were computed without");
  note(v, "age_s", s.age_s, "Seconds from reading parameters to applying a gradient on them");
  note(v, "update_order", s.update_order, "Share of pairs of updates applied in reverse order");
  note(v, "scaling_efficiency", s.scaling_efficiency,
       "Samples per second / (workers x those of `solo` on the same fabric)");
  note(v, "clients", s.clients, "Labels of the clients, where there are clients");
  v.field("tuning", s.tuning, "What `--tune` found for it", Presence::kWhenKnown);
}

void visit(RecordVisitor& v, ComparedStrategy& s) {
  visit(v, static_cast<ComparedFigures&>(s));
  note(v, "curves", s.curves, "Learning curve of each run");
  note(v, "series", s.series, "Training losses of each run");
  note(v, "timeline", s.timeline, "What each node did during one step of the first run");
  note(v, "links", s.links, "Who sent how much to whom in the first run");
  note(v, "nodes", s.nodes, "Nodes of the first run");
}

void visit(RecordVisitor& v, ComparedTask& task) {
  note(v, "data", task.data, "`task.data.kind`");
  note(v, "file", task.file, "Name of its file; empty: its kind says what it is");
  note(v, "model", task.model, "`task.model.kind`");
  note(v, "global_batch", task.global_batch, "`task.global_batch`");
  note(v, "epochs", task.epochs, "`task.epochs`");
  note(v, "target", task.target, "`task.target`");
  note(v, "metric", task.metric, "`accuracy`, `mse`, or `quality` where no run ended");
  note(v, "higher_is_better", task.higher_is_better, "Whether more of the metric is better");
  note(v, "identity", task.identity, "Identity of the task, see docs/definitions.md");
  note(v, "seeds", task.seeds, "Seeds that were asked for");
}

void visit(RecordVisitor& v, ComparedCluster& cluster) {
  note(v, "fabric", cluster.fabric, "`cluster.fabric`");
  note(v, "workers", cluster.workers, "`cluster.workers`");
  v.field("machines", cluster.machines,
          "Number of its machines; left out where they are not declared, or clusters differ",
          Presence::kWhenKnown);
  note(v, "description", cluster.description, "The cluster in words");
  note(v, "network", cluster.network, "Speed of its links; empty: not declared");
}

void visit(RecordVisitor& v, ComparisonValidation& validation) {
  note(v, "text", validation.text, "How far simulated times were from measured ones");
}

void visit(RecordVisitor& v, Refusal& refusal) {
  v.field("name", refusal.name, "Name of the strategy");
  note(v, "kind", refusal.kind, "`strategy.kind`");
  v.field("reason", refusal.reason, "Why it cannot run here");
}

void visit(RecordVisitor& v, ComparisonSource& source) {
  note(v, "path", source.path, "File or folder");
  note(v, "machine", source.machine, "Where it was made");
  note(v, "versions", source.versions, "What it was made with");
}

void visit(RecordVisitor& v, ComparisonHead& c) {
  v.field("schema", c.schema, "Version of this description: 1");
  v.field("kind", c.kind, "`comparison`");
  note(v, "name", c.name, "Name of the job");
  note(v, "created", c.created, "When, in UTC");
  note(v, "title", c.title, "The comparison in a line");
  note(v, "task", c.task, "What all strategies trained");
  note(v, "cluster", c.cluster, "What they trained on");
  note(v, "definitions", c.definitions, "What each figure means, in words");
  note(v, "job", c.job, "The job with all its settings, as TOML");
  note(v, "versions", c.versions, "What the program was built with");
  note(v, "machine", c.machine, "Where it ran");
  note(v, "validation", c.validation, "How far the figures can be trusted");
  note(v, "not_possible", c.not_possible, "Strategies that cannot run here");
  v.field("spent", c.spent, "What the machine that computed all this spent on it",
          Presence::kWhenKnown);
  v.field("sources", c.sources, "What it was put together from by `tutti report`",
          Presence::kWhenKnown);
}

void visit(RecordVisitor& v, Comparison& c) {
  visit(v, static_cast<ComparisonHead&>(c));
  v.field("strategies", c.strategies, "One for each strategy");
}

Comparison comparison_of(const json& whole, const std::string& where) {
  if (whole.is_discarded()) refuse_comparison(where, "is not complete JSON");
  if (!whole.is_object() || whole.value("kind", json()) != "comparison")
    throw DataError(
        fmt::format("{}: is not a comparison; give the compare.json that `tutti "
                    "compare` wrote, or its folder",
                    where));
  require_schema(whole, {1, kComparisonSchema}, where, "compare anew");
  const auto strategies = whole.find("strategies");
  if (strategies == whole.end() || !strategies->is_array() || strategies->empty())
    refuse_comparison(where, "has no strategies");
  try {
    return described_by<Comparison>(whole);
  } catch (const Mismatch& mismatch) {
    refuse_comparison(where, fmt::format("{} {}", mismatch.place, mismatch.problem));
  }
}

}  // namespace tutti

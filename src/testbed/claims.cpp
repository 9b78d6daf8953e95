#include "testbed/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/units.h"
#include "jobs/job.h"
#include "jobs/run_status.h"

namespace tutti {
namespace {

// Times that follow from learning on another processor, where gradients round differently, and
// times that are measured.
constexpr double kTimeShare = 0.1;
// The rounding of another processor changes a training as another order of its samples would, and
// the spread of the seeds says how much that is. It is never taken to be less than this, because a
// few seeds say little: of an accuracy, and of what has no natural scale.
constexpr double kLeastAccuracy = 0.02;
constexpr double kLeastShare = 0.1;

bool all_known(const SeedValues& values) {
  return !values.empty() && std::all_of(values.begin(), values.end(),
                                        [](const auto& value) { return value.has_value(); });
}

bool is_simulated(const ComparedStrategy& row) { return says(row.obtained, Obtained::kSimulated); }

double half_range(const Stat& stat) { return (stat.max - stat.min) / 2; }

// What the claims about all strategies have in common.
struct Maker {
  const Comparison& comparison;
  bool learning_decides_length;  // runs end at the target
  std::vector<Claim> claims;

  Claim claim(ClaimKind kind, const ComparedStrategy& row) const {
    Claim claim;
    claim.kind = kind;
    claim.strategy = row.name;
    claim.seeds = row.seeds;
    return claim;
  }

  // Returns whether there is anything to claim.
  static bool add_values(Claim& claim, const ComparedStrategy& row,
                         std::initializer_list<const char*> figures) {
    for (const char* name : figures)
      if (const OverSeeds& figure = claimed_figure(row, name)) claim.values[name] = figure->values;
    return !claim.values.empty();
  }

  // Of simulated figures that gradients do not decide.
  Tolerance of_costs() const { return {learning_decides_length ? kTimeShare : 0, 0}; }

  void outcome(const ComparedStrategy& row);
  void time_to_target(const ComparedStrategy& row);
  void quality(const ComparedStrategy& row);
  void costs(const ComparedStrategy& row);
  void curve(const ComparedStrategy& row);
  void plan(const ComparedStrategy& row);
  void order(const ComparedStrategy& first, const ComparedStrategy& second);
};

void Maker::outcome(const ComparedStrategy& row) {
  Claim made = claim(ClaimKind::kOutcome, row);
  made.statuses = row.statuses;
  const auto reached = static_cast<size_t>(row.reached.value_or(0));
  if (row.statuses.size() != row.seeds.size()) return;  // of an early version
  const std::string of_seeds =
      fmt::format("of {} seed{}", row.seeds.size(), row.seeds.size() == 1 ? "" : "s");
  std::set<std::string> statuses(row.statuses.begin(), row.statuses.end());
  std::string ends;
  for (const std::string& status : statuses)
    ends += fmt::format("{}{} {}", ends.empty() ? "" : ", ",
                        std::count(row.statuses.begin(), row.statuses.end(), status), status);
  made.text = fmt::format("{}: {} {}", row.name, ends, of_seeds);
  if (comparison.task.target) {
    made.text += fmt::format("; {} reached the target", reached);
    add_values(made, row, {"steps_to_target"});
    // Where seeds differ the target is near what can be reached, and one more may miss it.
    if (reached > 0 && reached < row.seeds.size()) made.elsewhere.absolute = 1;
  }
  claims.push_back(std::move(made));
}

void Maker::time_to_target(const ComparedStrategy& row) {
  const bool simulated = is_simulated(row);
  const char* figure = simulated ? "to_target_s" : "to_target_normalised_s";
  const OverSeeds& time = claimed_figure(row, figure);
  if (!time || !time->mean) return;
  Claim made = claim(ClaimKind::kTimeToTarget, row);
  add_values(made, row, {figure});
  made.elsewhere = {kTimeShare, half_range(*time)};
  if (!simulated) made.same = made.elsewhere;
  made.text = fmt::format("{} takes {:.4g} s to the target{}", row.name, *time->mean,
                          simulated ? "" : " at the reference speed");
  claims.push_back(std::move(made));
}

void Maker::quality(const ComparedStrategy& row) {
  const char* figure = row.quality.final_test ? "quality.final" : "quality.validation_final";
  const OverSeeds& quality = claimed_figure(row, figure);
  if (!quality || !quality->mean) return;
  Claim made = claim(ClaimKind::kQuality, row);
  add_values(made, row, {figure, "quality.validation_best"});
  const double least =
      comparison.task.higher_is_better ? kLeastAccuracy : kLeastShare * std::abs(*quality->mean);
  made.elsewhere.absolute = std::max(least, half_range(*quality));
  if (!is_simulated(row)) made.same = made.elsewhere;
  made.text = fmt::format("{} ends with {} {}", row.name, comparison.task.metric,
                          human_quality(*quality->mean));
  claims.push_back(std::move(made));
}

void Maker::costs(const ComparedStrategy& row) {
  const auto add = [&](ClaimKind kind, std::initializer_list<const char*> figures,
                       const Tolerance& same, const Tolerance& elsewhere, const std::string& text) {
    Claim made = claim(kind, row);
    if (!add_values(made, row, figures)) return;
    made.same = same;
    made.elsewhere = elsewhere;
    made.text = fmt::format("{} {}", row.name, text);
    claims.push_back(std::move(made));
  };
  const auto mean = [&](const char* figure) {
    const OverSeeds& found = claimed_figure(row, figure);
    return found ? found->mean.value_or(NAN) : NAN;
  };
  const std::string traffic =
      fmt::format("sends {:.4g} bytes in {:.4g} messages, in {:.4g} steps", mean("bytes_total"),
                  mean("messages_total"), mean("steps"));
  if (!is_simulated(row)) {
    const OverSeeds& time = row.total_normalised_s;
    const Tolerance measured{kTimeShare, time ? half_range(*time) : 0};
    add(ClaimKind::kTime, {"total_normalised_s"}, measured, measured,
        fmt::format("trains for {:.4g} s at the reference speed", mean("total_normalised_s")));
    // Workers that do not wait for each other may send a little more or less.
    const Tolerance sent{kTimeShare, 0};
    add(ClaimKind::kTraffic, {"bytes_total", "messages_total", "steps"}, sent, sent, traffic);
    return;
  }
  add(ClaimKind::kTime, {"total_s", "samples_per_s", "utilisation"}, {}, of_costs(),
      fmt::format("trains for {:.4g} s", mean("total_s")));
  add(ClaimKind::kTraffic,
      {"bytes_total", "bytes_per_node", "messages_total", "messages_per_node", "steps"}, {},
      of_costs(), traffic);
  add(ClaimKind::kMemory, {"peak_memory_bytes"}, {}, of_costs(),
      fmt::format("needs {:.4g} bytes of memory on a node", mean("peak_memory_bytes")));
  add(ClaimKind::kEnergy, {"energy_j", "co2e_g", "cost"}, {}, of_costs(),
      fmt::format("takes {:.4g} J, which are {:.4g} g CO2e", mean("energy_j"), mean("co2e_g")));
}

void Maker::curve(const ComparedStrategy& row) {
  size_t points = 0;
  for (const ComparedCurve& each : row.curves) points += each.points.size();
  if (!is_simulated(row) || points == 0) return;
  Claim made = claim(ClaimKind::kCurve, row);
  made.elsewhere = {of_costs().share, kLeastAccuracy};
  if (!comparison.task.higher_is_better) made.elsewhere = {kLeastShare, 0};
  made.text = fmt::format("{} learns along the curve of its {} measurements", row.name, points);
  claims.push_back(std::move(made));
}

void Maker::plan(const ComparedStrategy& row) {
  if (!is_simulated(row)) return;
  Claim made = claim(ClaimKind::kPlan, row);
  made.text = fmt::format("{} is planned as the bundle says{}{}", row.name,
                          row.plan.empty() ? "" : ": ", row.plan);
  claims.push_back(std::move(made));
}

// Whether every seed of the one is before every seed of the other. One seed alone does not say how
// much seeds differ: then it must be before it by more than what times are tolerated.
bool clearly_before(const SeedValues& first, const SeedValues& second) {
  if (!all_known(first) || !all_known(second)) return false;
  const double last = **std::max_element(first.begin(), first.end());
  const double earliest = **std::min_element(second.begin(), second.end());
  return first.size() > 1 ? last < earliest : last < (1 - kTimeShare) * earliest;
}

void Maker::order(const ComparedStrategy& first, const ComparedStrategy& second) {
  if (first.obtained != second.obtained || first.seeds != second.seeds) return;
  const bool to_target = comparison.task.target.has_value();
  const char* figure = is_simulated(first)
                           ? (to_target ? "to_target_s" : "total_s")
                           : (to_target ? "to_target_normalised_s" : "total_normalised_s");
  const OverSeeds &one = claimed_figure(first, figure), &other = claimed_figure(second, figure);
  if (!one || !other || !one->mean || !other->mean || !clearly_before(one->values, other->values))
    return;
  Claim made = claim(ClaimKind::kOrder, first);
  made.before = second.name;
  made.values[figure] = one->values;
  made.values_before = other->values;
  made.text = fmt::format("{} is before {}: {:.4g} s {} against {:.4g} s", first.name, second.name,
                          *one->mean, to_target ? "to the target" : "of training", *other->mean);
  claims.push_back(std::move(made));
}

bool ends_at_target(const Comparison& comparison) {
  const Job job = parse_job(comparison.job, "job.toml");
  return job.task.stop_at_target ||
         std::any_of(job.compare.begin(), job.compare.end(),
                     [](const Job& entry) { return entry.task.stop_at_target; });
}

bool follows(const Stat& stat) {
  const auto same = [&](const std::optional<Stat>& made) {
    return made && made->mean == stat.mean && made->min == stat.min && made->max == stat.max;
  };
  return same(statistic(stat.values)) || same(olympic_statistic(stat.values));
}

}  // namespace

void visit(RecordVisitor& v, Tolerance& t) {
  v.field("share", t.share, "Difference that is tolerated, as a share of the value");
  v.field("absolute", t.absolute, "The same in its unit; the larger of the two counts");
}

void visit(RecordVisitor& v, Claim& c) {
  std::string word(word_of(c.kind));
  v.field("kind", word,
          "`order`, `outcome`, `time to target`, `quality`, `time`, `traffic`, "
          "`memory`, `energy`, `curve` or `plan`: see docs/compare.md");
  if (v.reads()) {
    c.kind = value_of(word, c.kind);
    v.require(word_of(c.kind) == word, "kind", "is none of the kinds that there are");
  }
  v.field("text", c.text, "The claim in words");
  v.field("strategy", c.strategy, "Whom it is about");
  v.field("before", c.before, "Order: the strategy that is slower", Presence::kWhenKnown);
  v.field("seeds", c.seeds, "Seeds of the values");
  v.field("values", c.values, "Values by seed of each figure of compare.json that is claimed");
  v.field("values_before", c.values_before, "Order: the values of the slower strategy",
          Presence::kWhenKnown);
  v.field("statuses", c.statuses, "Outcome: how each seed ended", Presence::kWhenKnown);
  v.field("same", c.same, "Where processor and versions are those of the comparison");
  v.field("elsewhere", c.elsewhere, "Where they are others");
}

void visit(RecordVisitor& v, Claims& claims) {
  v.field("schema", claims.schema, "Version of this description, and of the rules: 1");
  v.field("kind", claims.kind, "`claims`");
  v.field("claims", claims.claims, "One after the other");
}

Claims claims_of(const Comparison& comparison) {
  Maker maker{comparison, ends_at_target(comparison), {}};
  for (const ComparedStrategy& first : comparison.strategies)
    for (const ComparedStrategy& second : comparison.strategies) maker.order(first, second);
  for (const ComparedStrategy& row : comparison.strategies) {
    maker.outcome(row);
    maker.time_to_target(row);
    maker.quality(row);
    maker.costs(row);
    maker.curve(row);
    maker.plan(row);
  }
  Claims claims;
  claims.claims = std::move(maker.claims);
  return claims;
}

const OverSeeds& claimed_figure(const ComparedStrategy& row, const std::string& name) {
  for (const NamedFigure& each : figures_over_seeds())
    if (name == each.name) return row.*each.figure;
  for (const NamedQuality& each : qualities_over_seeds())
    if (name == fmt::format("quality.{}", each.name)) return row.quality.*each.quality;
  throw Error(fmt::format("there is no figure {}", name));
}

double tolerated(const Tolerance& tolerance, double claimed) {
  return std::max(tolerance.share * std::abs(claimed), tolerance.absolute);
}

std::string contradiction_in(const Comparison& comparison) {
  for (const ComparedStrategy& row : comparison.strategies) {
    const auto fault = [&](const std::string& name, const OverSeeds& figure) -> std::string {
      if (!figure) return "";
      if (figure->values.size() == row.seeds.size() && follows(*figure)) return "";
      return fmt::format("{} of {} does not follow from the values of its seeds", name, row.name);
    };
    std::string found;
    for (const NamedFigure& each : figures_over_seeds())
      if (found.empty()) found = fault(each.name, row.*each.figure);
    for (const NamedQuality& each : qualities_over_seeds())
      if (found.empty())
        found = fault(fmt::format("quality.{}", each.name), row.quality.*each.quality);
    if (!found.empty()) return found;
    const SeedValues steps = row.steps_to_target ? row.steps_to_target->values : SeedValues{};
    const auto reached = std::count_if(steps.begin(), steps.end(),
                                       [](const auto& value) { return value.has_value(); });
    if (row.reached && *row.reached != reached)
      return fmt::format("reached of {} does not follow from its steps_to_target", row.name);
  }
  return "";
}

}  // namespace tutti

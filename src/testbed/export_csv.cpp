// CSV by RFC 4180: quoted where needed, numbers in full precision, unknown values empty.
#include "core/described_json.h"
#include "jobs/plan_json.h"
#include "testbed/exports.h"

namespace tutti {
namespace {

using nlohmann::json;

std::string cell(const json& value) {
  if (value.is_null()) return "";
  const std::string text = value.is_string()
                               ? value.get<std::string>()
                               : value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// A table that is filled row by row; columns are those that its first row names.
class Csv {
 public:
  void add(const char* column, const json& value) { add(std::string(column), value); }
  void add(const std::string& column, const json& value) {
    if (rows_ == 0) {
      if (!header_.empty()) header_ += ',';
      header_ += cell(column);
    }
    if (!at_start_) line_ += ',';
    line_ += cell(value);
    at_start_ = false;
  }
  void end_row() {
    body_ += line_ + "\r\n";
    line_.clear();
    at_start_ = true;
    ++rows_;
  }
  std::string text() const { return header_ + "\r\n" + body_; }

 private:
  std::string header_, body_, line_;
  size_t rows_ = 0;
  bool at_start_ = true;
};

void add_statistic(Csv& csv, const OverSeeds& figure, const std::string& name) {
  const json stat = figure ? json_of(*figure) : json{{"mean", {}}, {"min", {}}, {"max", {}}};
  csv.add(name, stat["mean"]);
  csv.add(name + "_min", stat["min"]);
  csv.add(name + "_max", stat["max"]);
}

void add_run(Csv& csv, const std::string& strategy, const std::optional<uint64_t>& seed,
             const char* source) {
  csv.add("strategy", strategy);
  csv.add("seed", json_of(seed));
  csv.add("source", source);
}

// A row of curves in long form: what is not known is empty.
void add_point(Csv& csv, const RecordedEvaluation& point) {
  const json row = json_of(point);
  for (const char* key : {"step", "samples", "epoch", "time_s", "bytes", "loss", "quality"})
    csv.add(key, row[key]);
  csv.end_row();
}

template <class T>
std::optional<T> at(const std::vector<T>& column, size_t i) {
  return i < column.size() ? std::optional(column[i]) : std::nullopt;
}

}  // namespace

std::string csv_of_strategies(const Comparison& comparison) {
  Csv csv;
  for (const ComparedStrategy& strategy : comparison.strategies) {
    const json row = json_of(static_cast<const ComparedFigures&>(strategy));
    for (const char* key :
         {"name", "kind", "fabric", "workers", "obtained", "status", "error", "shared_curve_of"})
      csv.add(key, row[key]);
    for (const TaxonomyPart& part : taxonomy_parts())
      csv.add(part.name, row["taxonomy"][part.name]);
    csv.add("seeds", strategy.seeds.size());
    csv.add("reached", row["reached"]);
    for (const NamedQuality& each : qualities_over_seeds())
      add_statistic(csv, strategy.quality.*each.quality, std::string("quality_") + each.name);
    for (const NamedFigure& each : figures_over_seeds())
      add_statistic(csv, strategy.*each.figure, each.name);
    for (const char* key : {"compute_s", "communicate_s", "aggregate_s", "wait_s", "other_s"})
      csv.add(key, row["time_split"][key]);
    for (const char* key : {"staleness", "age_s"})
      for (const char* of : {"mean", "max"}) csv.add(std::string(key) + "_" + of, row[key][of]);
    for (const char* key : {"update_order", "scaling_efficiency", "energy_method", "co2e_method",
                            "currency", "cost_method"})
      csv.add(key, row[key]);
    csv.end_row();
  }
  return csv.text();
}

std::string csv_of_curves(const Comparison& comparison) {
  Csv csv;
  for (const ComparedStrategy& strategy : comparison.strategies) {
    for (const ComparedCurve& curve : strategy.curves)
      for (const RecordedEvaluation& point : curve.points) {
        add_run(csv, strategy.name, curve.seed, "evaluation");
        add_point(csv, point);
      }
    for (const ComparedSeries& series : strategy.series)
      for (size_t i = 0; i < series.loss.size(); ++i) {
        add_run(csv, strategy.name, series.seed, "training");
        add_point(csv, {.step = at(series.step, i),
                        .time_s = at(series.time_s, i),
                        .epoch = {},
                        .samples = at(series.samples, i),
                        .bytes = {},
                        .loss = series.loss[i],
                        .quality = {}});
      }
  }
  return csv.text();
}

}  // namespace tutti

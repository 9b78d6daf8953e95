// CSV by RFC 4180: quoted where needed, numbers in full precision, unknown values empty.
#include <nlohmann/json.hpp>

#include "testbed/comparison_check.h"
#include "testbed/exports.h"
#include "testbed/json_members.h"

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

void add_statistic(Csv& csv, const json& statistic, const std::string& name) {
  csv.add(name, member(statistic, "mean"));
  csv.add(name + "_min", member(statistic, "min"));
  csv.add(name + "_max", member(statistic, "max"));
}

void add_run(Csv& csv, const json& strategy, const json& seed, const char* source) {
  csv.add("strategy", strategy["name"]);
  csv.add("seed", seed);
  csv.add("source", source);
}

}  // namespace

std::string csv_of_strategies(const json& comparison) {
  Csv csv;
  for (const json& strategy : comparison.at("strategies")) {
    for (const char* key :
         {"name", "kind", "fabric", "workers", "obtained", "status", "error", "shared_curve_of"})
      csv.add(key, member(strategy, key));
    for (const char* key : {"structure", "parallelism", "optimisation", "timing", "pattern"})
      csv.add(key, member(member(strategy, "taxonomy"), key));
    csv.add("seeds", list_member(strategy, "seeds").size());
    csv.add("reached", member(strategy, "reached"));
    for (const char* key : {"best", "final", "at_equal_samples", "at_equal_time", "validation_best",
                            "validation_final", "test_final"})
      add_statistic(csv, member(member(strategy, "quality"), key), std::string("quality_") + key);
    for (const std::string& key : statistics_of_a_strategy())
      add_statistic(csv, member(strategy, key), key);
    for (const char* key : {"compute_s", "communicate_s", "aggregate_s", "wait_s", "other_s"})
      csv.add(key, member(member(strategy, "time_split"), key));
    for (const char* key : {"staleness", "age_s"})
      for (const char* of : {"mean", "max"})
        csv.add(std::string(key) + "_" + of, member(member(strategy, key), of));
    for (const char* key : {"update_order", "scaling_efficiency", "energy_method", "co2e_method",
                            "currency", "cost_method"})
      csv.add(key, member(strategy, key));
    csv.end_row();
  }
  return csv.text();
}

std::string csv_of_curves(const json& comparison) {
  Csv csv;
  for (const json& strategy : comparison.at("strategies")) {
    for (const json& curve : list_member(strategy, "curves"))
      for (const json& point : list_member(curve, "points")) {
        add_run(csv, strategy, member(curve, "seed"), "evaluation");
        for (const char* key : {"step", "samples", "epoch", "time_s", "bytes", "loss", "quality"})
          csv.add(key, member(point, key));
        csv.end_row();
      }
    for (const json& series : list_member(strategy, "series")) {
      const size_t length = list_member(series, "loss").size();
      for (size_t i = 0; i < length; ++i) {
        add_run(csv, strategy, member(series, "seed"), "training");
        for (const char* key : {"step", "samples", "epoch", "time_s", "bytes", "loss", "quality"}) {
          const json& column = list_member(series, key);
          csv.add(key, i < column.size() ? column[i] : json());
        }
        csv.end_row();
      }
    }
  }
  return csv.text();
}

}  // namespace tutti

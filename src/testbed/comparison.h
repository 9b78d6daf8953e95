// A comparison: what compare.json holds and what reports, tables and exports are made from.
// Described once: comparison.cpp says how it is written, what a reader checks and what
// docs/record_reference.md says of each key.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jobs/recorded_run.h"
#include "jobs/spending.h"
#include "testbed/statistics.h"
#include "testbed/tuned.h"

namespace tutti {

inline constexpr int64_t kComparisonSchema = 1;

// A figure over the seeds of a strategy; empty when no seed has one.
using OverSeeds = std::optional<Stat>;
void visit(RecordVisitor& visitor, Stat& stat);

struct ComparedQuality {
  OverSeeds best, final_test, at_equal_samples, at_equal_time;
  OverSeeds validation_best, validation_final, test_final;
};

// Seconds, mean over nodes and seeds.
struct TimeSplit {
  std::optional<double> compute_s, communicate_s, aggregate_s, wait_s, other_s;
};
void visit(RecordVisitor& visitor, TimeSplit& split);

// The evaluations of one run.
struct ComparedCurve {
  std::optional<uint64_t> seed;
  std::vector<RecordedEvaluation> points;
};
void visit(RecordVisitor& visitor, ComparedCurve& curve);

// The losses of one run, step by step; NaN where a loss is not known. Columns are equally long.
struct ComparedSeries {
  std::optional<uint64_t> seed;
  std::vector<int64_t> step;
  std::vector<double> time_s;
  std::vector<int64_t> samples;
  std::vector<double> loss;
};
void visit(RecordVisitor& visitor, ComparedSeries& series);

// What a page draws of a strategy; all of it may be long.
struct ComparedPictures {
  std::vector<ComparedCurve> curves;
  std::vector<ComparedSeries> series;
  std::vector<RecordedTimeline> timeline;
  std::vector<RecordedLink> links;
  std::vector<RecordedNode> nodes;
};

// What is said of a strategy in words and numbers.
struct ComparedFigures {
  std::string name, kind;
  nlohmann::json settings = nlohmann::json::object();  // of the strategy's own
  RecordedTaxonomy taxonomy;
  std::string fabric;
  std::optional<int64_t> workers;
  std::string plan;
  std::optional<double> machines;
  std::string obtained, status, error;
  std::optional<std::string> shared_curve_of, same_run_as;
  std::optional<TaskIdentity> task;
  std::optional<Machine> machine;
  std::vector<std::string> missing;  // which files could not be read
  std::vector<uint64_t> seeds;
  std::vector<std::string> runs;      // a folder for each seed
  std::vector<std::string> statuses;  // how each seed ended; empty in files of earlier versions
  std::optional<int64_t> reached;     // seeds that reached the target
  std::string remedy;                 // the setting to try where a seed learnt nothing
  ComparedQuality quality;
  OverSeeds to_target_s, to_target_normalised_s, steps_to_target, samples_to_target, converged_s,
      converged_steps, total_s, total_normalised_s, wall_s, cpu_s, startup_s, samples_per_s, steps,
      bytes_total, bytes_per_node, messages_total, messages_per_node, peak_memory_bytes,
      utilisation, energy_j, kwh, co2e_g, cost, spot_cost;
  std::string energy_method, co2e_method, cost_method, currency;
  TimeSplit time_split;
  RecordedStaleness staleness;
  RecordedAge age_s;
  std::optional<double> update_order, scaling_efficiency;
  std::optional<RecordedTable> clients;
  std::optional<ComparedTuning> tuning;  // of a comparison with --tune
};
void visit(RecordVisitor& visitor, ComparedFigures& figures);

struct ComparedStrategy : ComparedFigures, ComparedPictures {};
void visit(RecordVisitor& visitor, ComparedStrategy& strategy);

// The figures that are given over seeds, by name and with their meaning.
struct NamedFigure {
  const char* name;
  OverSeeds ComparedFigures::*figure;
  const char* meaning;
};
std::span<const NamedFigure> figures_over_seeds();
struct NamedQuality {
  const char* name;
  OverSeeds ComparedQuality::*quality;
  const char* meaning;
};
std::span<const NamedQuality> qualities_over_seeds();
void visit(RecordVisitor& visitor, ComparedQuality& quality);

struct ComparedTask {
  std::string data, model;
  std::string file;  // of the data, where one names it
  std::optional<int64_t> global_batch, epochs;
  std::optional<double> target;
  std::string metric;
  bool higher_is_better = true;
  std::optional<TaskIdentity> identity;
  std::vector<uint64_t> seeds;
};
void visit(RecordVisitor& visitor, ComparedTask& task);

struct ComparedCluster {
  std::string fabric;
  std::optional<int64_t> workers;
  std::optional<int64_t> machines;  // of its workers; empty where machines are not declared
  std::string description;
  std::string network;  // "1 Gbit/s"; empty where none is declared
};
void visit(RecordVisitor& visitor, ComparedCluster& cluster);

struct ComparisonValidation {
  std::string text;
};
void visit(RecordVisitor& visitor, ComparisonValidation& validation);

// A strategy that cannot run here.
struct Refusal {
  std::string name, kind, reason;
};
void visit(RecordVisitor& visitor, Refusal& refusal);

// Where a part of a comparison comes from that was made of several.
struct ComparisonSource {
  std::string path;
  std::optional<Machine> machine;
  std::optional<Versions> versions;
};
void visit(RecordVisitor& visitor, ComparisonSource& source);

// All but the strategies.
struct ComparisonHead {
  int64_t schema = kComparisonSchema;
  std::string kind = "comparison";
  std::string name, created, title;
  ComparedTask task;
  ComparedCluster cluster;
  std::map<std::string, std::string> definitions;
  std::string job;  // resolved
  std::optional<Versions> versions;
  std::optional<Machine> machine;
  ComparisonValidation validation;
  std::vector<Refusal> not_possible;
  std::optional<Spent> spent;  // by the machine that computed all this
  std::vector<ComparisonSource> sources;
};
void visit(RecordVisitor& visitor, ComparisonHead& head);

struct Comparison : ComparisonHead {
  std::vector<ComparedStrategy> strategies;
};
void visit(RecordVisitor& visitor, Comparison& comparison);

// Throws DataError that begins with `where` (a file), names the place and says what to do.
Comparison comparison_of(const nlohmann::json& whole, const std::string& where);

}  // namespace tutti

// A run as its run.json and `tutti train --json` tell of it. Described once: recorded_run.cpp says
// how it is written, what a reader checks and what docs/record_reference.md says of each key.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/described.h"
#include "jobs/task_identity.h"
#include "jobs/versions.h"

namespace tutti {

inline constexpr int64_t kRunSchema = 2;

// The place of a strategy among all, in the words of `Taxonomy`.
struct RecordedTaxonomy {
  std::string structure, parallelism, optimisation, timing, pattern;
  std::string data, stragglers, communication, computation;  // empty in records of older versions
};
void visit(RecordVisitor& visitor, RecordedTaxonomy& taxonomy);

struct RecordedQuality {
  std::string metric;  // accuracy | mse; empty: not known
  bool higher_is_better = true;
  std::optional<double> best, last;  // on validation samples
  std::optional<double> final_test;  // on test samples
  std::optional<double> target;
  bool reached = false;
  bool at_chance = false;
  std::string remedy;  // for a run at chance; empty: nothing to remedy
};
void visit(RecordVisitor& visitor, RecordedQuality& quality);

struct RecordedTime {
  std::string clock;
  std::optional<double> startup_s;
  double data_s = 0;
  std::optional<double> to_target_s, total_s, wall_s, normalised, relative_speed;
  bool series_count_data = false;
  std::optional<double> compute_s, communicate_s, aggregate_s, wait_s, other_s, cpu_s;
};
void visit(RecordVisitor& visitor, RecordedTime& time);

struct RecordedStaleness {
  std::optional<double> mean, max;
  std::vector<int64_t> histogram;
};
void visit(RecordVisitor& visitor, RecordedStaleness& staleness);

struct RecordedAge {
  std::optional<double> mean, max;
};
void visit(RecordVisitor& visitor, RecordedAge& age);

// A share of a run's energy that can be told from the others.
struct EnergyPart {
  std::string of;          // "host 0", "link of host 0", "uplink of rack 0", "node 0", ...
  std::vector<int> ranks;  // of the nodes on that host or rack
  double joules = 0;
};
void visit(RecordVisitor& visitor, EnergyPart& part);

struct RecordedEnergy {
  std::optional<double> joules;
  std::string method;
  std::vector<EnergyPart> parts;
  std::optional<double> kwh;  // of the data centre
};
void visit(RecordVisitor& visitor, RecordedEnergy& energy);

struct RecordedCo2e {
  std::optional<double> grams;
  std::string method;
};
void visit(RecordVisitor& visitor, RecordedCo2e& co2e);

struct RecordedCost {
  std::optional<double> amount;
  std::string currency, method;
  std::optional<double> spot_amount;
};
void visit(RecordVisitor& visitor, RecordedCost& cost);

// One measurement on validation samples.
struct RecordedEvaluation {
  std::optional<int64_t> step;
  std::optional<double> time_s, epoch;
  std::optional<int64_t> samples;
  std::optional<double> bytes, loss, quality;
};
void visit(RecordVisitor& visitor, RecordedEvaluation& evaluation);

struct RecordedNode {
  int64_t rank = 0;
  std::string role;
  std::optional<double> total_s, compute_s, communicate_s, aggregate_s, wait_s, other_s, cpu_s;
  std::optional<double> utilisation, peak_memory_bytes, reference_flops;
  std::optional<uint64_t> bytes_sent, messages;
  std::optional<int64_t> steps, samples;
  std::optional<double> staleness_mean, staleness_max;
  std::string sha256;
};
void visit(RecordVisitor& visitor, RecordedNode& node);

struct RecordedLink {
  int64_t from = 0, to = 0;
  uint64_t bytes = 0;
};
void visit_value(RecordVisitor& visitor, RecordedLink& link);

// One stretch of a node's time: in which phase, from when to when.
struct RecordedInterval {
  std::string kind;
  double from_s = 0, to_s = 0;
};
void visit_value(RecordVisitor& visitor, RecordedInterval& interval);

struct RecordedTimeline {
  int64_t rank = 0;
  std::string role;
  std::vector<RecordedInterval> intervals;
};
void visit(RecordVisitor& visitor, RecordedTimeline& timeline);

struct RecordedTable {
  std::vector<std::string> columns;
  std::vector<std::vector<double>> rows;
};
void visit(RecordVisitor& visitor, RecordedTable& table);

struct RecordedExtra {
  std::map<std::string, std::vector<std::pair<int64_t, double>>> series;  // step, value
  std::map<std::string, double> figures;
  std::map<std::string, RecordedTable> tables;
};
void visit(RecordVisitor& visitor, RecordedExtra& extra);

struct RecordedResume {
  int64_t steps = 0, samples = 0;
};
void visit(RecordVisitor& visitor, RecordedResume& resume);

// How far off a prediction of this run was (jobs/prediction.h).
struct RecordedPrediction {
  double predicted_s = 0, error = 0;  // time to target; half its interval of 90 %, relative
  std::optional<double> took_s, off;  // empty: the target was missed
  bool within = false;
};
void visit(RecordVisitor& visitor, RecordedPrediction& prediction);

// Totals are empty where nothing was measured.
struct RecordedRun {
  int64_t schema = kRunSchema;
  std::string name, status, error;
  int64_t exit_code = 0;
  std::string strategy;
  RecordedTaxonomy taxonomy;
  std::string fabric;
  int64_t workers = 0;
  std::string plan;
  std::optional<int64_t> machines;
  uint64_t seed = 0;
  std::string obtained;  // measured | simulated
  std::optional<TaskIdentity> task;
  RecordedQuality quality;
  RecordedTime time;
  std::optional<RecordedPrediction> prediction;
  std::optional<double> peak_memory_bytes, utilisation;
  std::optional<uint64_t> steps, samples;
  std::optional<int64_t> steps_to_target, samples_to_target;
  std::optional<double> samples_per_s;
  std::optional<uint64_t> bytes_sent, messages;
  RecordedStaleness staleness;
  RecordedAge age_s;
  std::optional<double> update_order;
  std::map<std::string, int64_t> counters;
  RecordedEnergy energy;
  RecordedCo2e co2e;
  RecordedCost cost;
  std::string parameters_sha256;
  std::vector<RecordedEvaluation> evaluations;
  std::vector<RecordedNode> nodes;
  std::vector<RecordedLink> links;
  std::vector<RecordedTimeline> timeline;
  RecordedExtra extra;
  std::vector<int64_t> lost;
  std::optional<RecordedResume> resumed;
  std::optional<Versions> versions;
  std::optional<Machine> machine;
  std::string folder;
};
void visit(RecordVisitor& visitor, RecordedRun& run);

// Throws DataError that names the file, the value at fault and what to do.
RecordedRun read_recorded_run(const std::string& path);

}  // namespace tutti

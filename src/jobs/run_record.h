// What is known of a run when it has ended: what its nodes reported, and how they ended. What is
// written of it, into run.json and by `--json`, is a RecordedRun.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "jobs/footprint.h"
#include "jobs/job.h"
#include "jobs/node_report.h"
#include "jobs/prediction.h"
#include "jobs/progress.h"
#include "jobs/recorded_run.h"
#include "jobs/run_status.h"

namespace tutti {

struct RunRecord {
  RunStatus status = RunStatus::kFailed;
  std::string error;
  int exit_code = 0;
  std::string folder;
  std::string metric;                    // accuracy | mse
  std::optional<TaskIdentity> task;      // empty when no record is kept
  std::optional<Prediction> prediction;  // of this run, by an advice
  std::string plan;  // what the strategy planned, in words; empty: nothing to plan
  int64_t machines = 1;
  bool higher_is_better = true;
  double chance = 0;              // accuracy of guessing among the classes
  size_t validation_samples = 0;  // that quality is measured on during training
  bool unscaled = false;          // features are numbers of a file, not standardised
  bool virtual_clock = false;
  double startup_s = 0;
  double data_s = 0;  // reading the data: part of the training time on real fabrics
  double data_cpu_s = 0, data_joules = 0;  // of reading; joules if measured
  double wall_s = 0;                       // that the run took here, whatever its clock
  double joules = 0;                       // the sum of the parts
  std::string energy_method;
  std::vector<EnergyPart> energy_parts;
  Figure co2e;                             // grams
  double kwh = 0;                          // of the data centre
  Cost cost;                               // in the currency of the job
  Resumed resumed;                         // what an earlier run did; reports are of this run
  Course course;                           // what was planned
  Rank recorder = 0;                       // as planned
  int64_t workers = 1;                     // likewise
  std::vector<EvaluationRow> evaluations;  // whoever kept the record
  std::vector<NodeReport> nodes;           // those that reported
  std::vector<NodeOutcome> outcomes;
};

// Ranks that did not see the end, whether or not the others went on without them.
std::vector<int> lost_nodes(const RunRecord& record);

// Returns the training time: from before the first sample is read, where reading counts, until the
// last node ends.
double total_seconds(const RunRecord& record);

RecordedRun recorded(const RunRecord& record, const Job& job);
// How far its prediction was off. Nothing without one, and of a run that resumes another one.
std::optional<RecordedPrediction> recorded_prediction(const RunRecord& record, const Job& job);
nlohmann::json to_json(const RunRecord& record, const Job& job);
// As text, whatever is in it: a path need not be UTF-8, JSON must.
std::string json_text(const nlohmann::json& value, int indent = -1);

// For people, a few lines.
std::string summary(const RunRecord& record, const Job& job);

}  // namespace tutti

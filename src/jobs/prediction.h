// A prediction that an advice leaves beside the job that it writes, and what became of it.
//
// It is a file of its own, JOB.prediction.json beside JOB.toml: so the job stays one that any
// version of the program reads, whoever copies a job to another machine sees what to copy with it,
// and removing it forgets it. It names what it holds for by fingerprints: the task with its data,
// the job but for its cluster and its seed, and the cluster.
#pragma once

#include <optional>
#include <string>

#include "core/described.h"
#include "fabric/cluster.h"
#include "jobs/recorded_run.h"

namespace tutti {

struct Job;

struct Prediction {
  int64_t schema = 1;
  std::string task;     // fingerprint of the task (jobs/task_identity.h)
  std::string job;      // likewise of what else decides how the job learns
  std::string cluster;  // likewise of the virtual cluster
  std::string cluster_name, strategy;
  int64_t workers = 0, hosts = 0, threads = 1;
  double time_s = 0;  // to the target
  double error = 0;   // half the width of its interval of 90 %, relative
  // The same for a simulated run, to which nothing is added by what real networks and machines do.
  double error_of_simulation = 0;
  std::string made, program;  // when, and by which version
};
void visit(RecordVisitor& visitor, Prediction& prediction);

// A prediction of this job, without a time yet. `name` is what the cluster is called.
Prediction prediction_for(const Job& job, const std::string& name);

std::string moment_now();  // UTC, such as 2026-11-19T23:40:00Z

// "best.toml" -> "best.prediction.json".
std::string prediction_file_of(const std::string& job_file);
// Returns nothing where there is no such file. Throws DataError when it is not a prediction, naming
// the file and what to do.
std::optional<Prediction> read_prediction(const std::string& path);

// Returns why a prediction does not hold for a job that was loaded; empty: it does, if the task is
// the same. A real run has no declared cluster: it must have as many workers on as many machines.
std::string why_not_of(const Prediction& prediction, const Job& job);

// `took_s` empty: the target was missed.
RecordedPrediction held_against(const Prediction& prediction, std::optional<double> took_s,
                                bool simulated);
// "41 s +- 4 s, took 43 s (measured): 5 % more, within the error"; an error above 20 % is told by
// both ends: "41 s, 27 s to 62 s".
std::string in_words(const RecordedPrediction& prediction, bool simulated);

}  // namespace tutti

// From a job to a run record: read the data, make the fabric, run every node, keep the record.
#pragma once

#include <atomic>
#include <string>

#include "jobs/progress.h"
#include "jobs/resolve.h"
#include "jobs/run_record.h"

namespace tutti {

struct LaunchOptions {
  std::string out;         // run folder; empty: a new one below runs/
  bool keep_files = true;  // false: no folder at all (tests, benchmarks)
  ProgressStyle progress = ProgressStyle::kNone;
  // The prediction made of the job, which holds for its run if that is of the same task.
  std::optional<Prediction> prediction = {};
};

// Throws ConfigError, DataError or, when `stop` was raised, InterruptedError before the run folder
// is made; afterwards every end is a record, also one that comes before anything was started. The
// job then has what the planner decided.
RunRecord launch(Job& job, const LaunchOptions& options, const std::atomic<bool>& stop);

// The same of a job that is resolved: for many runs on one data set.
RunRecord launch(const Resolved& resolved, const LaunchOptions& options,
                 const std::atomic<bool>& stop);

}  // namespace tutti

// A run folder, read back: its record, its job and its series. What a comparison is made from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jobs/job.h"
#include "jobs/recorded_run.h"
#include "jobs/run_status.h"

namespace tutti {

// Training loss per step, as rank 0 saw it. `time_s` counts as time to target does.
struct Series {
  std::vector<int64_t> step;
  std::vector<double> time_s, loss;
  std::vector<int64_t> samples;
};

struct RunFiles {
  std::string folder;
  RecordedRun record;  // run.json
  Job job;
  Series series;
  std::string missing;   // which of its files could not be read; else empty
  std::string curve_of;  // the run whose learning curve this one shares; empty: its own

  bool cost_only() const { return job.cluster.cost_only; }
};

// Throws DataError that names the file and what is wrong with it: not there, damaged, or of another
// version (found, expected, what to do). Follows a note that the learning curve is another run's.
RunFiles read_run(const std::string& folder);

// What stands in for a run that left no record.
RunFiles missing_run(const std::string& folder, const Job& job, RunStatus status,
                     const std::string& error);

// Notes in the folder of a cost-only run whose learning curve belongs to it; `other` is a folder
// beside it.
void note_shared_curve(const std::string& folder, const std::string& other);

// Puts loss and quality of `source` to the times and bytes of `run`, step by step. Throws DataError
// when the two do not go together.
void stitch(RunFiles& run, const RunFiles& source);

}  // namespace tutti

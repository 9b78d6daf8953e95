// One node's part in a job, from memory to report: what a fabric runs on each of its nodes.
#pragma once

#include <string>
#include <vector>

#include "fabric/node.h"
#include "jobs/job.h"
#include "jobs/progress.h"
#include "models/model.h"

namespace tutti {

// What every node shares, prepared by the launcher before the nodes start.
struct Stage {
  const Job& job;
  const Data& data;
  const Architecture& architecture;
  MakeModel make_model;
  std::string folder;  // empty: keep no files
  ProgressStyle progress = ProgressStyle::kNone;
  int64_t total_steps = 0;
  int64_t total_samples = 0;  // 0: not known
  Resumed resumed = {};       // what an earlier run has done
  double data_s = 0;          // of reading, if it counts as training time
  double predicted_memory_bytes = 0;        // of the worker that needs most
  std::vector<double> memory_by_node = {};  // what simulated nodes report as used
};

// Returns the node's report as text. A run that ends early throws PartialResult with the report of
// what was done until then.
std::string participate(const Stage& stage, Node& node);

}  // namespace tutti

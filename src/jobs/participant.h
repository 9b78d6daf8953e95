// One node's part in a job, from memory to report: what a fabric runs on each of its nodes.
#pragma once

#include <string>
#include <vector>

#include "fabric/node.h"
#include "jobs/progress.h"
#include "jobs/resolve.h"
#include "models/model.h"

namespace tutti {

class RecordBook;

// What every node shares, prepared by the launcher before the nodes start.
struct Stage {
  const Resolved& resolved;
  const ModelMaker& models;
  std::string folder;  // empty: keep no files
  ProgressStyle progress = ProgressStyle::kNone;
  double data_s = 0;  // of reading, if it counts as training time
  RecordBook* book = nullptr;  // of the nodes of the launcher's machine; others only report
};

// Returns the node's report as text. A run that ends early throws PartialResult with the report of
// what was done until then.
std::string participate(const Stage& stage, Node& node);

}  // namespace tutti

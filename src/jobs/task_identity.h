// Identifies a task, so that figures of different tasks never share a table. A task is the data,
// its split, the model, the family of the optimizer, the global batch, the metric and the target.
// The architecture, the cluster, the seed and the rates may vary within a task.
#pragma once

#include <optional>
#include <string>

#include "core/described.h"
#include "jobs/resolve.h"

namespace tutti {

// Fingerprints and settings. A part that is empty is not known.
struct TaskIdentity {
  std::string fingerprint;  // of all the others
  std::string data, split, model, optimizer, metric;
  std::optional<int64_t> global_batch;
  std::optional<double> target;  // empty: there is none
};
void visit(RecordVisitor& visitor, TaskIdentity& task);

// Synthetic data differs for every seed of a task, so its settings stand for it.
TaskIdentity task_identity(const Job& job, const Resolved& resolved);

// Returns the parts in which two tasks differ, as "target 0.8 (there 0.9)". Empty when there are
// none.
std::string task_difference(const TaskIdentity& here, const TaskIdentity& there);

}  // namespace tutti

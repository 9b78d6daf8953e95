// What a task is, so that figures of different tasks never share a table: the data, its split, the
// model, the family of the optimizer, the global batch, the metric and the target. The
// architecture, the cluster, the seed and the rates are what one varies within a task.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "jobs/job.h"

namespace tutti {

// sgd for sgd, momentum and nesterov, which follow the gradient itself; else the kind.
std::string optimizer_family(const std::string& kind);

// {"fingerprint", "data", "split", "model", "optimizer", "global_batch", "metric", "target"}.
// Synthetic data is another for every seed of a task: its settings stand for it.
nlohmann::json task_identity(const Job& job, const Prepared& prepared);

// The parts in which two tasks differ, as "target 0.8 (there 0.9)"; empty: none, or one of them is
// of an older version and does not say.
std::string task_difference(const nlohmann::json& here, const nlohmann::json& there);

}  // namespace tutti

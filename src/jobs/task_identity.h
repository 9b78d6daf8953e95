// Identifies a task, so that figures of different tasks never share a table. A task is the data,
// its split, the model, the family of the optimizer, the global batch, the metric and the target.
// The architecture, the cluster, the seed and the rates may vary within a task.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "jobs/resolve.h"

namespace tutti {

// Returns {"fingerprint", "data", "split", "model", "optimizer", "global_batch", "metric",
// "target"}. Synthetic data differs for every seed of a task, so its settings stand for it.
nlohmann::json task_identity(const Job& job, const Resolved& resolved);

// Returns the parts in which two tasks differ, as "target 0.8 (there 0.9)". Empty when there are
// none, or when one record comes from an older version and does not say.
std::string task_difference(const nlohmann::json& here, const nlohmann::json& there);

}  // namespace tutti

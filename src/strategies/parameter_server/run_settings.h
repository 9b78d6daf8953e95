// The settings and the data that the result of a run depends on. A snapshot carries them, so that
// resuming from it continues the same run.
#pragma once

#include <map>
#include <string>

#include "strategies/parameter_server/config.h"
#include "strategies/strategy.h"

namespace tutti::parameter_server {

using RunSettings = std::map<std::string, std::string>;  // "optimizer.lr": "0.1"

// Leaves out what may change: how long a run trains, how often it measures, and how its messages
// travel. Paths are left out too, since fingerprints tell whether the data is the same.
RunSettings run_settings(const TaskConfig& task, const OptimizerConfig& optimizer,
                         const ClusterConfig& cluster, const Config& config, const DataSizes& data);

// Writes one setting per line.
std::string to_text(const RunSettings& settings);
RunSettings settings_in(const std::string& text);

// Returns a text such as "optimizer.lr 0.1 -> 0.2, task.seed 1 -> 2"; empty when there is no
// difference.
std::string difference(const RunSettings& before, const RunSettings& now);

}  // namespace tutti::parameter_server

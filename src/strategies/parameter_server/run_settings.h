// The settings that the result of a run depends on, and its data. A snapshot carries them, so that
// who goes on from it goes on with the same run.
#pragma once

#include <map>
#include <string>

#include "strategies/parameter_server/config.h"
#include "strategies/strategy.h"

namespace tutti::parameter_server {

using RunSettings = std::map<std::string, std::string>;  // "optimizer.lr": "0.1"

// How long a run trains, how often it measures, and how what it computes travels is left out: that
// may change. Where files lie is left out too; fingerprints tell whether the data is the same.
RunSettings run_settings(const TaskConfig& task, const OptimizerConfig& optimizer,
                         const ClusterConfig& cluster, const Config& config, const Data& data);

// One per line.
std::string to_text(const RunSettings& settings);
RunSettings settings_in(const std::string& text);

// "optimizer.lr 0.1 -> 0.2, task.seed 1 -> 2"; empty: there is no difference.
std::string difference(const RunSettings& before, const RunSettings& now);

}  // namespace tutti::parameter_server

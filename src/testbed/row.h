// One strategy of a comparison, from its runs (one per seed) to its object in compare.json.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "testbed/run_files.h"
#include "testbed/statistics.h"

namespace tutti {

struct Contender {
  std::string name;
  std::vector<RunFiles> runs;
};

// Everything that can be said of it without looking at the others.
nlohmann::json strategy_row(const Contender& contender);

// One value per run. Runs that did not end well have none, unless none of them did: then what there
// is counts, and the status says so.
using Values = std::vector<std::optional<double>>;
Values values_of(const Contender& contender,
                 const std::function<std::optional<double>(const RunFiles&)>& of);

bool is_done(const RunFiles& run);
// Null unless there is a number.
std::optional<double> number_at(const nlohmann::json& object, const std::string& pointer);
nlohmann::json stat_json(const std::optional<Stat>& stat);

// The measurements of quality along "samples" or "time_s".
std::vector<CurvePoint> quality_curve(const RunFiles& run, const char* axis);

}  // namespace tutti

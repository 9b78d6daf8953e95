// One strategy of a comparison, from its runs (one per seed) to its part of compare.json.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "testbed/comparison.h"
#include "testbed/run_files.h"

namespace tutti {

struct Contender {
  std::string name;
  std::vector<RunFiles> runs;
};

// Everything that can be said of it without looking at the others.
ComparedStrategy strategy_row(const Contender& contender);

// One value per run. Runs that did not end well have none, unless none of them did: then what there
// is counts, and the status says so.
using Values = std::vector<std::optional<double>>;
Values values_of(const Contender& contender,
                 const std::function<std::optional<double>(const RunFiles&)>& of);

bool is_done(const RunFiles& run);

// Whether a strategy of this kind is what others are measured by: it has one worker, whatever the
// cluster has. A kind that only another version has is not.
bool is_baseline(std::string_view kind);

// The measurements of quality along steps, samples or seconds.
using Axis = std::function<std::optional<double>(const RecordedEvaluation&)>;
std::optional<double> step_of(const RecordedEvaluation& evaluation);
std::optional<double> samples_of(const RecordedEvaluation& evaluation);
std::optional<double> time_of(const RecordedEvaluation& evaluation);
std::vector<CurvePoint> quality_curve(const RunFiles& run, const Axis& axis);

}  // namespace tutti

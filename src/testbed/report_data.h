// The part of a comparison that its report draws: long series thinned, large pictures summed up, so
// that the page opens at once however many runs and steps there were.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "testbed/comparison.h"

namespace tutti {

inline constexpr size_t kMostPointsPerSeries = 1000;
inline constexpr size_t kMostPoints = 120'000;        // of all series together
inline constexpr size_t kMostSmoothPoints = 150;      // of a smoothed loss
inline constexpr size_t kMostNodesDrawn = 64;         // beyond, ranks are drawn in groups
inline constexpr size_t kMostIntervalsPerNode = 500;  // of the timeline

// Differs from the comparison in: `curves` and `series` are columns of numbers, thinned, and series
// have a smoothed loss beside it; `question` is the headline, `car` what CO2e is compared with;
// `timeline` has at most kMostNodesDrawn rows of at most kMostIntervalsPerNode intervals; `network`
// stands in for `links` and `nodes`; `thinned` says what was left out.
nlohmann::json report_data(const Comparison& comparison);

}  // namespace tutti

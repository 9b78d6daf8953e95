// How far simulated times are from measured ones: see docs/advise.md for the measurement.
#pragma once

namespace tutti {

// Mean absolute error of all-reduce times on shaped links, ring to all-to-all, against real TCP.
inline constexpr double kSimulationError = 0.08;
inline constexpr const char* kSimulationErrorSource =
    "bound of the validation test on shaped links";

}  // namespace tutti

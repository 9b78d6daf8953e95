// Figures as an advice writes them.
#pragma once

#include <fmt/format.h>

#include <string>

#include "core/units.h"
#include "testbed/interval.h"

namespace tutti {

inline std::string in_seconds(double value) { return human_quantity(value, Unit::kSeconds); }

inline std::string in_bits(double bytes_per_second) {
  const double bits = bytes_per_second * 8;
  return bits >= 1e9 ? fmt::format("{:.3g} Gbit/s", bits / 1e9)
                     : fmt::format("{:.3g} Mbit/s", bits / 1e6);
}

// "+- 4 s", or both ends where they differ: ", 5.6 ms to 26 ms".
inline std::string interval_of(double time_s, double error) {
  const TimeInterval ends = interval_around(time_s, error);
  return is_lopsided(error)
             ? fmt::format(", {} to {}", in_seconds(ends.least), in_seconds(ends.most))
             : fmt::format(" +- {}", in_seconds(time_s * error));
}

}  // namespace tutti

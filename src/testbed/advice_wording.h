// Figures as an advice writes them.
#pragma once

#include <fmt/format.h>

#include <string>

#include "core/units.h"

namespace tutti {

inline std::string in_seconds(double value) { return human_quantity(value, Unit::kSeconds); }

inline std::string in_bits(double bytes_per_second) {
  const double bits = bytes_per_second * 8;
  return bits >= 1e9 ? fmt::format("{:.3g} Gbit/s", bits / 1e9)
                     : fmt::format("{:.3g} Mbit/s", bits / 1e6);
}

}  // namespace tutti

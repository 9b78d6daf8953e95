// What a run leaves behind beside its model: CO2e from its energy, and money from its time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/schema.h"

namespace tutti {

// The country that is none, for a mean over all.
inline constexpr std::string_view kWorld = "world";

// [footprint]
struct FootprintConfig {
  std::string country{kWorld};
  double intensity = 0;  // g CO2e per kWh; 0: that of the country
  double tdp_watts = 0;  // of this machine's processor; 0: 4 W a hardware thread
  double price = 0.10;   // of one machine for an hour
  std::string currency = "EUR";
};
void visit(Visitor& visitor, FootprintConfig& config);

struct GridIntensity {
  std::string_view country;  // ISO 3166 alpha-3, or world
  double grams_per_kwh;
};
const std::vector<GridIntensity>& grid_intensities();

// An amount and how it was obtained.
struct Figure {
  double value = 0;
  std::string method;
};
Figure co2e_grams(const FootprintConfig& config, double joules);
Figure cost_of(const FootprintConfig& config, double machines, double seconds);

}  // namespace tutti

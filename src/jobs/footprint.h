// What a run leaves behind beside its model: energy from the grid and CO2e from what its machines
// draw, and money from its time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/schema.h"
#include "fabric/cluster.h"

namespace tutti {

// The country that is none, for a mean over all.
inline constexpr std::string_view kWorld = "world";

// [footprint]
struct FootprintConfig {
  std::string country{kWorld};
  double intensity = 0;   // g CO2e per kWh; 0: that of the country
  double tdp_watts = 0;   // of this machine's processor; 0: 4 W a hardware thread
  double pue = 1;         // power that the data centre takes for each watt of its machines
  double price = 0.10;    // of one machine for an hour
  double spot_price = 0;  // the same where it may be taken away; 0: not known
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
// For the energy that the machines draw: the rest of the data centre is added.
double kilowatt_hours(const FootprintConfig& config, double joules);
Figure co2e_grams(const FootprintConfig& config, double joules);

// The price on demand, and where machines may be taken away; empty where no such price is known.
struct Cost {
  Figure on_demand;
  std::optional<double> spot;
};
// The price of so many machines; those of a virtual cluster have the prices of their kinds.
Cost cost_of(const FootprintConfig& config, const ClusterConfig& cluster, int64_t machines,
             double seconds);

}  // namespace tutti

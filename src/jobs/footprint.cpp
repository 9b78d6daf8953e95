#include "jobs/footprint.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti {
namespace {

constexpr double kJoulesPerKwh = 3.6e6;

}  // namespace

const std::vector<GridIntensity>& grid_intensities() {
  // These are yearly means of 2023, except for the world: 475 is what CodeCarbon assumes for an
  // unknown place.
  static const std::vector<GridIntensity> table = {
      {kWorld, 475}, {"CHN", 582}, {"DEU", 381}, {"FRA", 56}, {"GBR", 238},
      {"IND", 713},  {"NOR", 30},  {"POL", 662}, {"SWE", 41}, {"USA", 369}};
  return table;
}

void visit(Visitor& v, FootprintConfig& c) {
  std::vector<std::string_view> countries;
  for (const GridIntensity& entry : grid_intensities()) countries.push_back(entry.country);
  v.choice("country", c.country, countries, "whose power grid feeds the machines");
  v.field("intensity", c.intensity, kNotNegative,
          "g CO2e per kWh of that grid; 0: the mean of the country in 2023, or for \"world\" 475, "
          "which is "
          "CodeCarbon's default");
  v.quantity("tdp", c.tdp_watts, Unit::kWatts,
             "power of this machine's processor, where nothing measures it; 0: 4 W a thread");
  v.field("price", c.price, kNotNegative, "of one machine for an hour");
  v.field("currency", c.currency, "of the price");
}

Figure co2e_grams(const FootprintConfig& config, double joules) {
  double intensity = config.intensity;
  for (const GridIntensity& entry : grid_intensities())
    if (intensity == 0 && entry.country == config.country) intensity = entry.grams_per_kwh;
  const std::string source = config.intensity > 0       ? "as set"
                             : config.country == kWorld ? "CodeCarbon's default for the world"
                                                        : "mean of " + config.country + ", 2023";
  return {joules / kJoulesPerKwh * intensity,
          fmt::format("energy x {} g/kWh ({})", intensity, source)};
}

Figure cost_of(const FootprintConfig& config, double machines, double seconds) {
  return {machines * seconds / 3600 * config.price,
          fmt::format("{} machine{} x time x {} {} an hour", machines, machines == 1 ? "" : "s",
                      config.price, config.currency)};
}

}  // namespace tutti

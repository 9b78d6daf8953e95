#include "jobs/footprint.h"

#include <fmt/format.h>

#include <map>

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
  v.field("pue", c.pue, kAtLeastOne,
          "power that the data centre takes for each watt of its machines, which kWh and CO2e "
          "count");
  v.field("price", c.price, kNotNegative, "of one machine for an hour");
  v.field("spot_price", c.spot_price, kNotNegative,
          "the same where the machine may be taken away; 0: not known");
  v.field("currency", c.currency, "of the prices");
}

double kilowatt_hours(const FootprintConfig& config, double joules) {
  return joules / kJoulesPerKwh * config.pue;
}

Figure co2e_grams(const FootprintConfig& config, double joules) {
  double intensity = config.intensity;
  for (const GridIntensity& entry : grid_intensities())
    if (intensity == 0 && entry.country == config.country) intensity = entry.grams_per_kwh;
  const std::string source = config.intensity > 0       ? "as set"
                             : config.country == kWorld ? "CodeCarbon's default for the world"
                                                        : "mean of " + config.country + ", 2023";
  return {
      kilowatt_hours(config, joules) * intensity,
      fmt::format("energy {}x {} g/kWh ({})",
                  config.pue == 1 ? "" : fmt::format("x PUE {} ", config.pue), intensity, source)};
}

Cost cost_of(const FootprintConfig& config, const ClusterConfig& cluster, int64_t machines,
             double seconds) {
  const double hours = seconds / 3600;
  const bool kinds = cluster.fabric == FabricKind::kVirtual;
  std::map<double, int64_t> count_by_price;
  double on_demand = 0, spot = 0;
  bool spot_known = false;
  for (int64_t host = 0; host < machines; ++host) {
    const HostKind* kind = kinds ? kind_of_host(cluster, host) : nullptr;
    const double price = kind && kind->price > 0 ? kind->price : config.price;
    const double lower = kind && kind->spot_price > 0 ? kind->spot_price : config.spot_price;
    ++count_by_price[price];
    on_demand += price;
    spot += lower > 0 ? lower : price;  // only some may be taken away
    spot_known = spot_known || lower > 0;
  }
  std::string parts;
  for (const auto& [price, count] : count_by_price)
    parts += fmt::format("{}{} machine{} x time x {}", parts.empty() ? "" : " + ", count,
                         count == 1 ? "" : "s", price);
  Cost cost{{hours * on_demand, fmt::format("{} {} an hour", parts, config.currency)}, {}};
  if (spot_known) cost.spot = hours * spot;
  return cost;
}

}  // namespace tutti

#include "jobs/perspective.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

namespace tutti {
namespace {

constexpr double kKmPerMile = 1.609344;
constexpr double kCarGramsPerMile = 400;

using Steps = std::array<std::pair<double, const char*>, 4>;

// In the largest unit of which there is at least one.
std::string scaled(double value, const Steps& steps) {
  if (value == 0) return fmt::format("0 {}", steps[1].second);
  const double digit = std::pow(10, std::floor(std::log10(std::abs(value))) - 2);
  value = std::round(value / digit) * digit;
  for (const auto& [size, name] : steps)
    if (std::abs(value) >= size) return fmt::format("{:.4g} {}", value / size, name);
  return fmt::format("{:.3g} {}", value / steps.back().first, steps.back().second);
}

}  // namespace

double car_grams_per_km() { return kCarGramsPerMile / kKmPerMile; }

std::string car_source() {
  return fmt::format("{} g a mile, the mean passenger car of the United States (EPA-420-F-23-014)",
                     kCarGramsPerMile);
}

std::string kwh_text(double kwh) {
  return scaled(kwh, {{{1e3, "MWh"}, {1, "kWh"}, {1e-3, "Wh"}, {1e-6, "mWh"}}});
}

std::string mass_text(double grams) {
  return scaled(grams, {{{1e6, "t"}, {1e3, "kg"}, {1, "g"}, {1e-3, "mg"}}});
}

std::string car_text(double grams) {
  return scaled(1000 * grams / car_grams_per_km(),
                {{{1e3, "km"}, {1, "m"}, {1e-2, "cm"}, {1e-3, "mm"}}});
}

std::string in_perspective(const Consumption& c) {
  const std::string spot = c.spot_cost ? fmt::format("{:.3g} to ", *c.spot_cost) : "";
  return fmt::format("{}, {} CO2e (a car makes as much in {}), {}{:.3g} {}", kwh_text(c.kwh),
                     mass_text(c.co2e_grams), car_text(c.co2e_grams), spot, c.cost, c.currency);
}

}  // namespace tutti

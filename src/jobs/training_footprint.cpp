#include "jobs/training_footprint.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "jobs/perspective.h"

namespace tutti {
namespace {

constexpr double kJoulesInKwh = 3.6e6;
constexpr double kGramsPerPound = 453.59237;

void require(bool holds, const char* option, double value, const char* expected) {
  if (!holds)
    throw ConfigError(option, fmt::format("--{} {}: expected {}", option, value, expected));
}

void require_sensible(const TrainingDescription& t) {
  const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
  require(positive(t.watts), "watts", t.watts, "a number above 0");
  require(positive(t.hours), "hours", t.hours, "a number above 0");
  require(positive(t.machines), "machines", t.machines, "a number above 0");
  require(positive(t.trainings), "trainings", t.trainings, "a number above 0");
  require(std::isfinite(t.pue) && t.pue >= 1, "pue", t.pue,
          "1 or more: a data centre takes at least what its machines take");
  require(std::isfinite(t.spot_price) && t.spot_price >= 0, "spot-price", t.spot_price,
          "0 or more");
}

}  // namespace

TrainingFootprint footprint_of(const TrainingDescription& training, const FootprintConfig& config) {
  require_sensible(training);
  if (training.spot_price > config.price)
    throw ConfigError("spot-price",
                      fmt::format("--spot-price {}: is above --price {}, what the machine costs on "
                                  "demand; exchange them, or give both",
                                  training.spot_price, config.price));
  TrainingFootprint result;
  result.machine_hours = training.hours * training.machines * training.trainings;
  result.kwh = training.watts / 1000 * result.machine_hours * training.pue;
  result.co2e_grams = co2e_grams(config, result.kwh * kJoulesInKwh);
  result.cost = result.machine_hours * config.price;
  result.spot_cost = result.machine_hours * training.spot_price;
  result.car_km = result.co2e_grams.value / car_grams_per_km();
  if (!std::isfinite(result.co2e_grams.value) || !std::isfinite(result.cost))
    throw ConfigError("watts",
                      "the footprint is larger than any number; check --watts, --hours, "
                      "--machines and --trainings");
  return result;
}

double parse_intensity(const std::string& text) {
  static constexpr std::array<std::pair<std::string_view, double>, 4> kUnits = {
      {{"", 1}, {"g/kWh", 1}, {"kg/kWh", 1000}, {"lb/kWh", kGramsPerPound}}};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (error == std::errc() && std::isfinite(value) && value >= 0)
    for (const auto& [name, grams] : kUnits)
      if (unit == name) return value * grams;
  throw ConfigError("intensity", fmt::format("--intensity \"{}\": expected an amount of CO2e for a "
                                             "kWh, e.g. 432, \"432 g/kWh\" or \"0.954 lb/kWh\"",
                                             text));
}

}  // namespace tutti

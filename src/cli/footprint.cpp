// `tutti footprint`: energy, CO2e and cost of a training that nobody has to run for it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "core/error.h"
#include "jobs/perspective.h"
#include "jobs/run_record.h"
#include "jobs/training_footprint.h"

namespace tutti {
namespace {

FootprintConfig config_of(const FootprintOptions& options) {
  FootprintConfig config;
  config.price = options.price;
  config.currency = options.currency;
  config.country = options.country;
  std::vector<std::string_view> countries;
  for (const GridIntensity& each : grid_intensities()) countries.push_back(each.country);
  if (std::find(countries.begin(), countries.end(), config.country) == countries.end())
    throw ConfigError(
        "country", fmt::format("--country {} is not known here; known are {}. For another one give "
                               "its --intensity",
                               config.country, fmt::join(countries, ", ")));
  if (!options.intensity.empty()) config.intensity = parse_intensity(options.intensity);
  if (!std::isfinite(config.price) || config.price < 0)
    throw ConfigError("price", fmt::format("--price {}: expected 0 or more", config.price));
  return config;
}

std::string count_text(double count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string cost_text(const TrainingFootprint& footprint, const FootprintOptions& options) {
  const std::string hours = fmt::format("{:.4g} machine hours", footprint.machine_hours);
  if (options.training.spot_price == 0)
    return fmt::format("{:.4g} {}: {} at {} {}", footprint.cost, options.currency, hours,
                       options.price, options.currency);
  return fmt::format("{:.4g} to {:.4g} {}: {} at {} (spot) or {} (on demand)", footprint.spot_cost,
                     footprint.cost, options.currency, hours, options.training.spot_price,
                     options.price);
}

void print_text(const TrainingFootprint& footprint, const FootprintOptions& options) {
  const TrainingDescription& training = options.training;
  std::cout << fmt::format("training  {}: {} of {:.6g} W, {:.6g} h, PUE {}\n",
                           count_text(training.trainings, "training"),
                           count_text(training.machines, "machine"), training.watts, training.hours,
                           training.pue);
  std::cout << fmt::format("energy    {:.4g} kWh\n", footprint.kwh);
  std::cout << fmt::format("CO2e      {}: {}\n", mass_text(footprint.co2e_grams.value),
                           footprint.co2e_grams.method);
  std::cout << fmt::format("cost      {}\n", cost_text(footprint, options));
  std::cout << fmt::format("as much   CO2e as a car makes in {:.3g} km: {}\n", footprint.car_km,
                           car_source());
}

nlohmann::json to_json(const TrainingFootprint& footprint, const FootprintOptions& options) {
  nlohmann::json result = {{"kwh", footprint.kwh},
                           {"co2e_g", footprint.co2e_grams.value},
                           {"co2e_method", footprint.co2e_grams.method},
                           {"machine_hours", footprint.machine_hours},
                           {"cost", footprint.cost},
                           {"currency", options.currency},
                           {"car_km", footprint.car_km},
                           {"car_source", car_source()}};
  if (options.training.spot_price > 0) result["spot_cost"] = footprint.spot_cost;
  return result;
}

}  // namespace

int run_footprint(const FootprintOptions& options) {
  const TrainingFootprint footprint = footprint_of(options.training, config_of(options));
  if (options.json)
    std::cout << json_text(to_json(footprint, options)) << "\n";
  else
    print_text(footprint, options);
  return 0;
}

}  // namespace tutti

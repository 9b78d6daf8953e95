// The footprint of a training that is described by its power and its time alone: of one that was
// published, planned, or is too large to be run here.
#pragma once

#include <string>

#include "jobs/footprint.h"

namespace tutti {

struct TrainingDescription {
  double watts = 0;       // of one machine while it trains
  double hours = 0;       // of one training
  double machines = 1;    // that train together
  double trainings = 1;   // that are made in all, e.g. by a search
  double pue = 1;         // power of the data centre for each watt of its machines
  double spot_price = 0;  // of a machine for an hour that may be taken away; 0: not known
};

struct TrainingFootprint {
  double kwh = 0;
  Figure co2e_grams;
  double machine_hours = 0;
  double cost = 0, spot_cost = 0;  // the latter 0 where no price is known
  double car_km = 0;               // that a passenger car drives for as much CO2e
};

// Throws ConfigError that names the number that makes no sense.
TrainingFootprint footprint_of(const TrainingDescription& training, const FootprintConfig& config);

// Returns g CO2e per kWh of a text with its unit: "432 g/kWh", "0.954 lb/kWh", or a number of
// grams. Throws ConfigError.
double parse_intensity(const std::string& text);

}  // namespace tutti

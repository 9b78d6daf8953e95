// Energy, CO2e and money of a training as a person pictures them.
#pragma once

#include <optional>
#include <string>

namespace tutti {

// The CO2e that a passenger car makes on a kilometre, and where that figure is from.
double car_grams_per_km();
std::string car_source();

// "0.137 Wh, 65.2 mg": three significant digits in a unit that fits.
std::string kwh_text(double kwh);
std::string mass_text(double grams);
// How far a car drives for as much CO2e, e.g. "26 cm".
std::string car_text(double grams);

struct Consumption {
  double kwh = 0;
  double co2e_grams = 0;
  double cost = 0;                  // on demand
  std::optional<double> spot_cost;  // where machines may be taken away
  std::string currency;
};
// "0.137 Wh, 65.2 mg CO2e (a car makes as much in 26 cm), 0.000145 EUR"
std::string in_perspective(const Consumption& consumption);

}  // namespace tutti

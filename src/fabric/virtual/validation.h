// How far simulated times were from measured ones, for reports to print beside a prediction.
// docs/validation.md says what was compared.
#pragma once

namespace tutti {

struct NetworkValidation {
  const char* date;
  const char* command;
  int cases;
  double mean_absolute_error;  // of the time, as a share of the measured one
  double worst_error;
  int pairs;           // of topologies that differ by more than 10 %
  int pairs_in_order;  // as predicted
};
inline constexpr NetworkValidation kNetworkValidation{
    "2026-11-16", "tutti bench network", 63, 0.026, 0.153, 63, 63};

}  // namespace tutti

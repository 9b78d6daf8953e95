#include "cli/network_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cli/today.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr double kMatters = 0.1;  // a measured difference above this must be predicted

double mean_of(const std::vector<double>& errors) {
  if (errors.empty()) return 0;
  return std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size());
}

double worst_of(const std::vector<double>& errors) {
  return errors.empty() ? 0 : *std::max_element(errors.begin(), errors.end());
}

}  // namespace

void NetworkStudy::add_left_out(const NetworkCase& c, int nodes, double bits_per_s) {
  left_out_.push_back({{"nodes", nodes},
                       {"bits_per_s", bits_per_s},
                       {"bytes", c.bytes},
                       {"topology", c.topology},
                       {"why", c.left_out}});
}

void NetworkStudy::add_measured(const std::vector<NetworkCase>& cases, int nodes, double bits_per_s,
                                double one_way_s) {
  for (const NetworkCase& c : cases) {
    const double error = c.predicted_s / c.measured_s - 1;
    errors_.push_back(std::abs(error));
    incremental_errors_.push_back(std::abs(c.incremental_s / c.measured_s - 1));
    cases_.push_back({{"nodes", nodes},
                      {"bits_per_s", bits_per_s},
                      {"bytes", c.bytes},
                      {"topology", c.topology},
                      {"repetitions", c.repetitions},
                      {"measured_s", c.measured_s},
                      {"predicted_s", c.predicted_s},
                      {"predicted_incremental_s", c.incremental_s},
                      {"one_way_s", one_way_s},
                      {"error", error}});
  }
  add_order(cases, nodes, bits_per_s);
}

void NetworkStudy::add_order(const std::vector<NetworkCase>& cases, int nodes, double bits_per_s) {
  for (const NetworkCase& a : cases)
    for (const NetworkCase& b : cases) {
      if (a.bytes != b.bytes || a.measured_s * (1 + kMatters) >= b.measured_s) continue;
      ++pairs_;
      if (a.predicted_s < b.predicted_s) continue;
      wrong_.push_back({{"nodes", nodes},
                        {"bits_per_s", bits_per_s},
                        {"bytes", a.bytes},
                        {"faster", a.topology},
                        {"slower", b.topology}});
    }
}

json NetworkStudy::summary(bool quiet) const {
  const int in_order = pairs_ - static_cast<int>(wrong_.size());
  const double mean = mean_of(errors_), worst = worst_of(errors_);
  const double incremental_mean = mean_of(incremental_errors_);
  const double incremental_worst = worst_of(incremental_errors_);
  if (!quiet)
    fmt::print(
        "\n{} cases: mean absolute error {:.1f} %, worst {:.1f} %; order right in {} of {} "
        "pairs that differ by more than 10 %; {} cases left out\n"
        "with network_solver = incremental: mean absolute error {:.1f} %, worst {:.1f} %\n",
        errors_.size(), mean * 100, worst * 100, in_order, pairs_, left_out_.size(),
        incremental_mean * 100, incremental_worst * 100);
  return {{"date", date_of_today()},
          {"case_count", cases_.size()},
          {"mean_absolute_error", mean},
          {"worst_error", worst},
          {"mean_absolute_error_incremental", incremental_mean},
          {"worst_error_incremental", incremental_worst},
          {"pairs", pairs_},
          {"pairs_in_order", in_order},
          {"out_of_order", wrong_},
          {"cases", cases_},
          {"left_out", left_out_}};
}

}  // namespace tutti

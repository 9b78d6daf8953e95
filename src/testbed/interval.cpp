#include "testbed/interval.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace tutti {

double t_of_90_percent(int freedom) {
  constexpr std::array kT = {6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860,
                             1.833, 1.812, 1.796, 1.782, 1.771, 1.761, 1.753};
  if (freedom < 1) return kT.front();
  if (freedom <= std::ssize(kT)) return kT[static_cast<size_t>(freedom - 1)];
  return kNormalOf90Percent * (1 + 1.0 / freedom);  // off by less than 0.2 % from here on
}

std::optional<Spread> spread_of(std::span<const double> runs) {
  if (runs.size() < 2) return std::nullopt;
  const auto count = static_cast<double>(runs.size());
  const double mean = std::accumulate(runs.begin(), runs.end(), 0.0) / count;
  double squares = 0;
  for (const double run : runs) squares += (run - mean) * (run - mean);
  return Spread{std::sqrt(squares / (count - 1)) / mean, static_cast<int>(runs.size()) - 1};
}

std::optional<Spread> common_spread(std::span<const Spread> spreads) {
  Spread common;
  double squares = 0;
  for (const Spread& spread : spreads) {
    common.freedom += spread.freedom;
    squares += spread.freedom * spread.relative * spread.relative;
  }
  if (common.freedom == 0) return std::nullopt;
  common.relative = std::sqrt(squares / common.freedom);
  return common;
}

TimeInterval interval_around(double value, double error) {
  return {value / (1 + error), value * (1 + error)};
}

// Up to here the lower end is off by less than 4 % of the value.
bool is_lopsided(double error) { return error > 0.2; }

double half_width_of_next(const Spread& spread, int runs, double grain) {
  const double relative = std::max(spread.relative, grain / std::sqrt(12.0));
  return t_of_90_percent(spread.freedom) * relative * std::sqrt(1 + 1.0 / runs);
}

std::optional<double> half_width_of_history(std::span<const double> log_ratios) {
  if (log_ratios.size() < kFewestOfHistory) return std::nullopt;
  const auto count = static_cast<double>(log_ratios.size());
  const double mean = std::accumulate(log_ratios.begin(), log_ratios.end(), 0.0) / count;
  double squares = 0;
  for (const double ratio : log_ratios) squares += (ratio - mean) * (ratio - mean);
  const double width = t_of_90_percent(static_cast<int>(log_ratios.size()) - 1) *
                       std::sqrt(squares / (count - 1) * (1 + 1 / count));
  return std::exp(std::abs(mean) + width) - 1;
}

}  // namespace tutti

// What "+- x %" beside a predicted time means: the interval in which the time of one more run, with
// a seed of its own, lies in 90 of 100 cases. Half widths are relative to the prediction.
#pragma once

#include <optional>
#include <span>

namespace tutti {

// How much single runs differ, and how well that is known.
struct Spread {
  double relative = 0;  // standard deviation of runs, as a share of their mean
  int freedom = 0;      // degrees of freedom: differences between runs that it was found from
};

// Student's t for 90 % on both sides: few runs tell little of their spread.
double t_of_90_percent(int freedom);
// For errors whose standard deviation is known.
inline constexpr double kNormalOf90Percent = 1.645;
// Of errors with a normal distribution: their standard deviation by the mean of their sizes.
inline constexpr double kDeviationByMeanSize = 1.2533;

// Nothing with fewer than two runs.
std::optional<Spread> spread_of(std::span<const double> runs);
// One spread that stands for all, each with the weight of its freedom. Nothing without any.
std::optional<Spread> common_spread(std::span<const Spread> spreads);

// Half the width of the interval around the mean of `runs` runs in which one more run lies. What is
// only noticed every so often is not known better than that, however little the runs differ:
// `grain` is that distance, relative to the mean.
double half_width_of_next(const Spread& spread, int runs, double grain);

// The interval that an error stands for. Times are positive, and known by their ratio: as many
// times longer as the one end is, so many times shorter is the other one. Where the error is small,
// these are the value less and more the error.
struct TimeInterval {
  double least = 0, most = 0;
  bool holds(double value) const { return least <= value && value <= most; }
};
TimeInterval interval_around(double value, double error);
// Whether an error is so large that the two ends have to be told apart.
bool is_lopsided(double error);

// Half the width of the interval in which the next real run lies, from how those before it differ
// from their predictions: the logarithms of their times over the predicted ones. Their mean is part
// of it, for the next prediction is made like those. Nothing with fewer than five.
inline constexpr size_t kFewestOfHistory = 5;
std::optional<double> half_width_of_history(std::span<const double> log_ratios);

}  // namespace tutti

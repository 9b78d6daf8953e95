#include "testbed/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tutti {
namespace {

constexpr size_t kOlympicFrom = 5;

std::vector<double> known(const std::vector<std::optional<double>>& values) {
  std::vector<double> result;
  for (const std::optional<double>& value : values)
    if (value) result.push_back(*value);
  return result;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

std::optional<Stat> statistic(const std::vector<std::optional<double>>& values) {
  const std::vector<double> numbers = known(values);
  if (numbers.empty()) return std::nullopt;
  const auto [min, max] = std::minmax_element(numbers.begin(), numbers.end());
  return Stat{mean(numbers), *min, *max, values};
}

std::optional<Stat> olympic_statistic(const std::vector<std::optional<double>>& values) {
  std::optional<Stat> result = statistic(values);
  if (!result) return result;
  std::vector<double> numbers = known(values);
  if (numbers.size() < values.size()) {
    result->mean.reset();
  } else if (numbers.size() >= kOlympicFrom) {
    std::sort(numbers.begin(), numbers.end());
    result->mean = mean({numbers.begin() + 1, numbers.end() - 1});
  }
  return result;
}

std::optional<double> value_at(const std::vector<CurvePoint>& curve, double x) {
  for (size_t i = 0; i < curve.size(); ++i) {
    if (curve[i].x == x) return curve[i].y;
    if (curve[i].x < x) continue;
    if (i == 0) return std::nullopt;
    const CurvePoint &a = curve[i - 1], &b = curve[i];
    return a.y + (b.y - a.y) * (x - a.x) / (b.x - a.x);
  }
  return std::nullopt;
}

size_t convergence_window(const ConvergenceRule& rule, size_t steps, double steps_per_epoch) {
  const double window = std::min(rule.window_share * static_cast<double>(steps),
                                 steps_per_epoch > 0 ? steps_per_epoch : INFINITY);
  return static_cast<size_t>(std::max(1.0, std::ceil(window)));
}

std::vector<double> smoothed(const std::vector<double>& losses, size_t window) {
  std::vector<double> result;
  const double weight = 2.0 / (static_cast<double>(window) + 1);
  for (const double loss : losses)
    result.push_back(result.empty() ? loss : result.back() + weight * (loss - result.back()));
  return result;
}

std::optional<size_t> converged_at(const std::vector<double>& losses, size_t window,
                                   double tolerance, double fall_share) {
  const std::vector<double> smooth = smoothed(losses, window);
  if (smooth.empty()) return std::nullopt;
  const double least = *std::min_element(smooth.begin(), smooth.end());
  const double low = smooth.front() - fall_share * (smooth.front() - least);
  double best = INFINITY, bar = INFINITY;  // `bar` was the best when the clock was last reset
  size_t since = 0;
  for (size_t i = 0; i < smooth.size(); ++i) {
    best = std::min(best, smooth[i]);
    if (i == 0 || best < (1 - tolerance) * bar) {
      since = i;
      bar = best;
    } else if (i - since >= window && since > 0 && bar <= low) {
      return since;
    }
  }
  return std::nullopt;
}

}  // namespace tutti

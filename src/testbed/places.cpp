#include "testbed/places.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "testbed/row.h"

namespace tutti {
namespace {

std::map<int, double> times_by_seed(const Choice& choice) {
  std::map<int, double> times;
  const auto& reached = choice.learning.reached_at;
  for (size_t i = 0; i < std::min(reached.size(), choice.times_s.size()); ++i)
    times[reached[i].first] = choice.times_s[i];
  return times;
}

// Of a ratio of which too few seeds are there to see a spread.
double error_of_seeds(const Choice& a, const Choice& b) {
  const bool same_curve = !a.equivalence.empty() && a.equivalence == b.equivalence;
  return same_curve ? 0 : std::hypot(a.errors().seeds, b.errors().seeds);
}

// Of two in the order of rank(). Means over seeds and over ratios may disagree about who is faster:
// then nobody knows.
bool is_surely_before(const Choice& a, const Choice& b) {
  if (a.always_reaches() != b.always_reaches()) return true;
  const Difference apart = difference(a, b);
  return apart.is_decided() && apart.log_ratio < 0;
}

constexpr double kAsLong = 1.01;  // times the first

}  // namespace

Difference difference(const Choice& a, const Choice& b) {
  Difference result{.log_ratio = std::log(a.time_s() / b.time_s())};
  const std::map<int, double> ours = times_by_seed(a), theirs = times_by_seed(b);
  std::vector<double> ratios;
  for (const auto& [seed, time] : ours)
    if (const auto other = theirs.find(seed); other != theirs.end())
      ratios.push_back(std::log(time / other->second));
  double seeds = error_of_seeds(a, b);
  if (ratios.size() > 1) {
    const auto n = static_cast<double>(ratios.size());
    double mean = 0, squares = 0;
    for (const double ratio : ratios) mean += ratio / n;
    for (const double ratio : ratios) squares += (ratio - mean) * (ratio - mean);
    result.log_ratio = mean;
    seeds = t_of_90_percent(static_cast<int>(ratios.size()) - 1) * std::sqrt(squares / (n - 1) / n);
  }
  // What all share cancels but for where shares of the time differ. No simulated network is known
  // better than this, so times that messages decide are not told apart beyond it.
  const double cost = (a.step.compute - b.step.compute) * std::max(a.cost_error, b.cost_error);
  const auto sends = [](const Choice& c) { return c.step.communicate + c.step.wait; };
  const double network = a.errors().network * std::max(sends(a), sends(b));
  result.error = std::hypot(seeds, cost, network);
  return result;
}

std::vector<Place> places(const std::vector<Choice>& ranked) {
  const size_t count = static_cast<size_t>(
      std::find_if(ranked.begin(), ranked.end(), [](const Choice& c) { return !c.is_judged(); }) -
      ranked.begin());
  std::vector<Place> result(count, Place{.first = 1, .last = count});
  std::vector<std::pair<size_t, size_t>> tied;
  for (size_t i = 0; i < count; ++i)
    for (size_t k = i + 1; k < count; ++k) {
      if (is_surely_before(ranked[i], ranked[k])) {
        --result[i].last;
        ++result[k].first;
      } else {
        tied.emplace_back(i, k);
      }
    }
  // Somebody may be surely behind the one and before the other of two that are tied, because the
  // error of those two is larger.
  for (const auto& [i, k] : tied) result[i].last = std::max(result[i].last, result[k].first);
  return result;
}

void prefer_solo(std::vector<Choice>& ranked) {
  const auto solo = std::find_if(ranked.begin(), ranked.end(),
                                 [](const Choice& c) { return is_baseline(c.job.strategy_kind); });
  if (solo == ranked.end() || !solo->is_judged()) return;
  if (solo->time_s() > kAsLong * ranked.front().time_s()) return;
  const bool tied = std::none_of(ranked.begin(), solo, [&](const Choice& before) {
    return before.always_reaches() != solo->always_reaches() ||
           difference(before, *solo).is_decided();
  });
  if (tied) std::rotate(ranked.begin(), solo, solo + 1);
}

}  // namespace tutti

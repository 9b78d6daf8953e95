#include "strategies/recorder.h"

#include <algorithm>
#include <cmath>

namespace tutti {
namespace {

// Pairs (i, j), i < j, with values[i] > values[j]; sorts the values on the way.
double count_inversions(std::vector<int64_t>& values) {
  std::vector<int64_t> merged(values.size());
  double inversions = 0;
  for (size_t width = 1; width < values.size(); width *= 2) {
    for (size_t begin = 0; begin < values.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, values.size());
      const size_t end = std::min(begin + 2 * width, values.size());
      size_t left = begin, right = middle, out = begin;
      while (left < middle && right < end) {
        if (values[right] < values[left]) {
          inversions += static_cast<double>(middle - left);
          merged[out++] = values[right++];
        } else {
          merged[out++] = values[left++];
        }
      }
      while (left < middle) merged[out++] = values[left++];
      while (right < end) merged[out++] = values[right++];
    }
    values.swap(merged);
  }
  return inversions;
}

double disorder_of(std::vector<int64_t> rounds) {
  const double inversions = count_inversions(rounds);
  const auto count = static_cast<double>(rounds.size());
  double pairs = count * (count - 1) / 2;  // without those of one round, which have no order
  for (size_t i = 0; i < rounds.size();) {
    size_t end = i;
    while (end < rounds.size() && rounds[end] == rounds[i]) ++end;
    const auto same = static_cast<double>(end - i);
    pairs -= same * (same - 1) / 2;
    i = end;
  }
  return pairs > 0 ? inversions / pairs : 0;
}

}  // namespace

void Recorder::applied(const Applied& update) {
  rounds_.push_back(update.round);
  staleness_sum_ += update.staleness;
  age_sum_s_ += update.age_s;
  totals_.staleness_max = std::max(totals_.staleness_max, update.staleness);
  totals_.age_max_s = std::max(totals_.age_max_s, update.age_s);
  const auto bucket = std::min(static_cast<size_t>(std::max(0.0, std::round(update.staleness))),
                               Freshness::kBuckets - 1);
  if (totals_.histogram.size() <= bucket) totals_.histogram.resize(bucket + 1);
  ++totals_.histogram[bucket];
}

void Recorder::measure(const std::string& name, int64_t step, double value) {
  Extra::Series& series = extra_.series[name];
  if (series.count++ % series.every != 0) return;
  auto& points = series.points;
  points.emplace_back(step, value);
  if (points.size() < Extra::kMostPoints) return;
  // Every other point, and from now on half as many.
  for (size_t i = 0; i < points.size() / 2; ++i) points[i] = points[2 * i];
  points.resize(points.size() / 2);
  series.every *= 2;
}

// The last evaluation counts too: workers that do not wait for each other learn of the last samples
// of others after their own last step.
int64_t Recorder::samples() const {
  return std::max(steps_.empty() ? 0 : steps_.back().samples,
                  evaluations_.empty() ? 0 : evaluations_.back().samples);
}

Freshness Recorder::freshness() const {
  Freshness result = totals_;
  result.count = static_cast<int64_t>(rounds_.size());
  if (result.count == 0) return result;
  result.staleness_mean = staleness_sum_ / static_cast<double>(result.count);
  result.age_mean_s = age_sum_s_ / static_cast<double>(result.count);
  result.disorder = disorder_of(rounds_);
  return result;
}

}  // namespace tutti

#include "strategies/scheduled/coordinates.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/random.h"

namespace tutti {
namespace {

// So many candidates are looked at for each place in a round.
constexpr size_t kCandidates = 8;
// What a coordinate that does not change counts as, in mean changes: its turn comes, too.
constexpr double kExplore = 0.1;
// A coordinate that was never updated comes before all others.
constexpr double kUntouched = 1e100;

double squared(double value) { return value * value; }

}  // namespace

CoordinateSchedule::CoordinateSchedule(CoordinateOrder order, size_t coordinates, size_t parallel,
                                       double conflict, uint64_t seed, Correlation correlation)
    : order_(order),
      parallel_(std::min(parallel, coordinates)),
      conflict_(conflict),
      seed_(seed),
      correlation_(std::move(correlation)),
      changes_(coordinates, -1.0),
      rounds_(coordinates) {}

std::vector<uint32_t> CoordinateSchedule::pick(uint64_t round) {
  if (order_ == CoordinateOrder::kCyclic) {
    std::vector<uint32_t> picked(parallel_);
    for (size_t i = 0; i < parallel_; ++i)
      picked[i] = static_cast<uint32_t>((round * parallel_ + i) % changes_.size());
    return picked;
  }
  if (order_ == CoordinateOrder::kPriority) {
    std::vector<uint32_t> picked = without_conflicts(drawn(round, true));
    for (const uint32_t coordinate : picked) rounds_[coordinate] = round;
    return picked;
  }
  std::vector<uint32_t> picked = drawn(round, false);
  picked.resize(parallel_);
  return picked;
}

// Without replacement: each coordinate waits for a time that is exponential with its weight, and
// the first ones are taken (Efraimidis and Spirakis, 2006).
std::vector<uint32_t> CoordinateSchedule::drawn(uint64_t round, bool by_priority) const {
  double sum = 0;
  for (const double change : changes_) sum += std::max(0.0, change);
  const double mean = sum / static_cast<double>(changes_.size());
  Random random(seed_, Stream::kCoordinates, static_cast<uint32_t>(round));
  std::vector<double> waits(changes_.size());
  for (size_t i = 0; i < waits.size(); ++i) {
    double weight = 1;
    if (by_priority && changes_[i] < 0)
      weight = kUntouched;
    else if (by_priority && mean > 0)
      weight = (changes_[i] / mean + kExplore) * squared(static_cast<double>(round - rounds_[i]));
    waits[i] = -std::log(1 - random.uniform()) / weight;
  }
  std::vector<uint32_t> order(waits.size());
  std::iota(order.begin(), order.end(), 0U);
  const size_t wanted = std::min(order.size(), by_priority ? kCandidates * parallel_ : parallel_);
  std::partial_sort(
      order.begin(), order.begin() + static_cast<ptrdiff_t>(wanted), order.end(),
      [&](uint32_t a, uint32_t b) { return waits[a] != waits[b] ? waits[a] < waits[b] : a < b; });
  order.resize(wanted);
  return order;
}

std::vector<uint32_t> CoordinateSchedule::without_conflicts(
    const std::vector<uint32_t>& candidates) const {
  std::vector<uint32_t> picked;
  for (const uint32_t candidate : candidates) {
    const bool conflicts =
        conflict_ < 1 && std::any_of(picked.begin(), picked.end(), [&](uint32_t other) {
          return correlation_(candidate, other) >= conflict_;
        });
    if (!conflicts) picked.push_back(candidate);
    if (picked.size() == parallel_) break;
  }
  return picked;
}

void CoordinateSchedule::changed(uint32_t coordinate, double size) {
  changes_[coordinate] = std::isfinite(size) ? std::abs(size) : 0;
}

}  // namespace tutti

#include "strategies/federated_averaging/aggregation.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/finite.h"
#include "optimizers/momentum.h"

namespace tutti::federated_averaging {

double reach_of(const OptimizerConfig& optimizer, int64_t steps) {
  const auto tau = static_cast<double>(steps);
  const auto* const rule = optimizer.rule.find<MomentumRule>();
  if (!rule) return tau;
  const double rho = rule->momentum;
  return (tau - rho * (1 - std::pow(rho, tau)) / (1 - rho)) / (1 - rho);
}

Weight weight_of(const Config& config, const OptimizerConfig& optimizer, int64_t samples,
                 int64_t steps) {
  const auto n = static_cast<double>(samples);
  if (clients_count_alike(config)) return {1, n, 1, 1};
  if (config.algorithm != Algorithm::kFednova) return {n, n, n, n};
  const double reach = reach_of(optimizer, steps);
  return {n / reach, n, n * reach, n};
}

void Aggregation::begin(size_t clients) {
  places_.assign(clients, Place{});
  next_ = added_ = 0;
  total_ = {};
  arithmetic_.fill(sum_.span(), 0.0);
}

size_t Aggregation::take_slot() {
  if (free_.empty()) {
    free_.push_back(slots_.size());
    slots_.emplace_back(size_ * vectors_);
  }
  const size_t slot = free_.back();
  free_.pop_back();
  return slot;
}

size_t Aggregation::add(size_t place, size_t slot, const Weight& weight) {
  TUTTI_CHECK(places_[place].state == Place::kOpen);
  places_[place] = {Place::kArrived, slot, weight};
  return advance();
}

size_t Aggregation::leave_out(size_t place) {
  TUTTI_CHECK(places_[place].state == Place::kOpen);
  places_[place].state = Place::kSettled;
  return advance();
}

size_t Aggregation::close() {
  size_t count = 0;
  for (; next_ < places_.size(); ++next_)
    if (places_[next_].state == Place::kArrived) {
      accumulate(next_);
      ++count;
    }
  return count;
}

size_t Aggregation::advance() {
  size_t count = 0;
  for (; next_ < places_.size() && places_[next_].state != Place::kOpen; ++next_)
    if (places_[next_].state == Place::kArrived) {
      accumulate(next_);
      ++count;
    }
  return count;
}

void Aggregation::accumulate(size_t index) {
  Place& place = places_[index];
  const Weight& weight = place.weight;
  arithmetic_.perform([&] {
    const float* update = slots_[place.slot].data();
    double* sum = sum_.data();
    for (size_t i = 0; i < size_; ++i) sum[i] += weight.factor * double{update[i]};
    if (weight.factor != weight.samples)
      for (const Range range : statistics_)
        for (size_t i = range.begin; i < range.end; ++i)
          sum[i] += (weight.samples - weight.factor) * double{update[i]};
  });
  total_.samples += weight.samples;
  total_.reach += weight.reach;
  total_.mass += weight.mass;
  ++added_;
  on_added_(index, slot(place.slot).subspan(size_));
  give_back(place.slot);
  place.state = Place::kSettled;
}

bool Aggregation::mean(std::span<float> mean) const {
  if (added_ == 0) return false;
  if (!arithmetic_.is_done()) return true;
  // For fednova this is the mean reach, sum of w_i a_i / w, times the mean of the normalised
  // differences.
  const double scale = total_.reach / total_.mass / total_.mass;
  for (size_t i = 0; i < size_; ++i) {
    mean[i] = static_cast<float>(scale * sum_.data()[i]);
  }
  for (const Range range : statistics_)
    for (size_t i = range.begin; i < range.end; ++i)
      mean[i] = static_cast<float>(sum_.data()[i] / total_.samples);
  return all_finite(mean);
}

}  // namespace tutti::federated_averaging

#include "strategies/federated_averaging/round.h"

#include <algorithm>
#include <utility>

namespace tutti::federated_averaging {

Round::Round(int64_t number, std::vector<int64_t> clients, const std::vector<size_t>& samples,
             const Limits& limits, bool largest_first)
    : number_(number), clients_(std::move(clients)), limits_(limits), begun_(clients_.size()) {
  for (size_t place = 0; place < clients_.size(); ++place) waiting_.push_back(place);
  if (largest_first)
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [&](size_t a, size_t b) { return samples[a] > samples[b]; });
}

std::optional<size_t> Round::next() {
  if (waiting_.empty()) return std::nullopt;
  const size_t place = waiting_.front();
  waiting_.pop_front();
  begun_[place] = true;
  ++under_way_;
  return place;
}

void Round::put_back(size_t place) {
  --under_way_;
  waiting_.push_front(place);
}

bool Round::over(double now_s) const {
  if (has_enough() || (waiting_.empty() && under_way_ == 0)) return true;
  return now_s >= limits_.closes_at_s && counts();
}

}  // namespace tutti::federated_averaging

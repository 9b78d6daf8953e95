// Notes now and then how many bytes a node has sent. The list stays small however long the run is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tutti {

class TrafficNotes {
 public:
  explicit TrafficNotes(size_t most) : most_(most) {}

  // Must be called after each step. When there are too many notes, half of them are dropped and the
  // distance between notes doubles.
  void step(double time_s, uint64_t bytes_sent) {
    if (++unnoted_ < every_) return;
    unnoted_ = 0;
    notes_.emplace_back(time_s, bytes_sent);
    if (notes_.size() < most_) return;
    for (size_t i = 0; i < most_ / 2; ++i) notes_[i] = notes_[2 * i + 1];
    notes_.resize(most_ / 2);
    every_ *= 2;
  }

  std::vector<std::pair<double, uint64_t>> notes() const { return notes_; }

 private:
  size_t most_;
  int64_t every_ = 1, unnoted_ = 0;
  std::vector<std::pair<double, uint64_t>> notes_;
};

}  // namespace tutti

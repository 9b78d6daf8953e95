// How many bytes a node has sent, noted now and then: a picture of its traffic that stays small
// however long the run is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tutti {

class TrafficNotes {
 public:
  explicit TrafficNotes(size_t most) : most_(most) {}

  // Called after each step. Half of the notes are kept, twice as far apart, whenever there are too
  // many.
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

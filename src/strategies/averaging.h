// Averages over all workers, and the arithmetic on whole parameter vectors with its time charged.
#pragma once

#include <functional>
#include <memory>

#include "collectives/all_reduce.h"
#include "strategies/strategy.h"

namespace tutti {

// The mean of a buffer over `members`, by a ring: every member ends with bitwise the same values.
class Averaging {
 public:
  Averaging(Context& context, std::span<const Rank> members, size_t count);
  // `values` must stay in place until finish().
  void start(std::span<float> values, Tag tag);
  void advance() { sum_->advance(); }  // never blocks
  void finish();
  void average(std::span<float> values, Tag tag) {
    start(values, tag);
    finish();
  }

 private:
  Context& context_;
  const size_t members_;
  std::unique_ptr<AllReduce> sum_;
  std::span<float> values_;
};

// The values of the first of `members`, on all of them.
void broadcast(Context& context, std::span<const Rank> members, std::span<float> values, Tag tag);

// What each member sends for one average of `count` floats over `workers`, and in how many
// messages.
StepCost averaging_cost(int64_t workers, size_t count);

// Runs `body` unless only costs count, and charges `passes` reads or writes of `count` floats.
void on_vectors(Context& context, double passes, size_t count, const std::function<void()>& body);

// How far apart the workers are: the root of the mean over all members of |own - mean|^2.
// Collective.
double consensus_distance(Context& context, std::span<const float> own, std::span<const float> mean,
                          Tag tag);

}  // namespace tutti

// Where a node's time goes. Exactly one phase runs at a time, so the phases add up to the total.
//
//  compute      loss, gradient, evaluation
//  aggregate    summing gradients and updating parameters
//  wait         blocked before the first byte of an exchange has arrived: a peer is late
//  communicate  the rest of an exchange: bytes are on their way
//  other        reading data, recording
#pragma once

#include <array>
#include <cstddef>

#include "fabric/node.h"

namespace tutti {

enum class Phase { kOther, kCompute, kAggregate, kWait, kCommunicate };

class Stopwatch {
 public:
  explicit Stopwatch(const Clock& clock) : clock_(&clock), since_(clock.now()) {}

  Phase enter(Phase phase) {
    const double now = clock_->now();
    seconds_[static_cast<size_t>(phase_)] += now - since_;
    since_ = now;
    return std::exchange(phase_, phase);
  }
  double seconds(Phase phase) const { return seconds_[static_cast<size_t>(phase)]; }

 private:
  const Clock* clock_;
  double since_;
  Phase phase_ = Phase::kOther;
  std::array<double, 5> seconds_{};
};

// The phase of a scope; the one before resumes at its end. Without a watch nothing is timed.
class PhaseScope {
 public:
  PhaseScope(Stopwatch* watch, Phase phase)
      : watch_(watch), before_(watch ? watch->enter(phase) : Phase::kOther) {}
  PhaseScope(Stopwatch& watch, Phase phase) : PhaseScope(&watch, phase) {}
  ~PhaseScope() {
    if (watch_) watch_->enter(before_);
  }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;
  void change(Phase phase) {
    if (watch_) watch_->enter(phase);
  }

 private:
  Stopwatch* watch_;
  Phase before_;
};

}  // namespace tutti

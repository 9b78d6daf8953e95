// Where a node's time goes. Exactly one phase runs at a time, so the phases add up to the total.
//
//  compute      loss, gradient, evaluation
//  aggregate    summing gradients and updating parameters
//  wait         blocked before the first byte of an exchange has arrived: a peer is late; or, in a
//               simulation, looking whether it has, whatever the node does meanwhile
//  communicate  the rest of an exchange: bytes are on their way
//  other        reading data, recording
#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "fabric/node.h"

namespace tutti {

enum class Phase { kOther, kCompute, kAggregate, kWait, kCommunicate };

// One stretch of a node's time, on the fabric's clock.
struct Interval {
  Phase phase = Phase::kOther;
  double begin_s = 0, end_s = 0;
};

class Stopwatch {
 public:
  // A picture of a step, not a log of a run: tracing ends by itself after so many intervals.
  static constexpr size_t kMostIntervals = 4096;

  explicit Stopwatch(const Clock& clock)
      : clock_(&clock), since_(clock.now()), polled_s_(clock.polled_s()) {}
  // Returns when the phase of now began; for a new watch that is when it was started.
  double since_s() const { return since_; }

  Phase enter(Phase phase) {
    const double now = clock_->now(), polled_s = clock_->polled_s();
    const double looking_s = polled_s - std::exchange(polled_s_, polled_s);
    seconds_[static_cast<size_t>(phase_)] += now - since_ - looking_s;
    seconds_[static_cast<size_t>(Phase::kWait)] += looking_s;
    if (tracing_ && now > since_) keep(now);
    since_ = now;
    return std::exchange(phase_, phase);
  }
  double seconds(Phase phase) const { return seconds_[static_cast<size_t>(phase)]; }

  // While on, every stretch is kept; neighbours of the same phase become one.
  void trace(bool on) {
    enter(phase_);
    tracing_ = on;
  }
  const std::vector<Interval>& intervals() const { return intervals_; }

 private:
  void keep(double now) {
    if (!intervals_.empty() && intervals_.back().phase == phase_ &&
        intervals_.back().end_s == since_)
      intervals_.back().end_s = now;
    else
      intervals_.push_back({phase_, since_, now});
    tracing_ = intervals_.size() < kMostIntervals;
  }

  const Clock* clock_;
  double since_, polled_s_;
  Phase phase_ = Phase::kOther;
  std::array<double, 5> seconds_{};
  bool tracing_ = false;
  std::vector<Interval> intervals_;
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

// How busy a worker was since its last pull, for rules that adapt to it.
#pragma once

#include <algorithm>

#include "fabric/stopwatch.h"
#include "strategies/parameter_server/config.h"

namespace tutti::parameter_server {

class Occupancy {
 public:
  Occupancy(const Clock& clock, Stopwatch& watch, const Config& config)
      : clock_(clock),
        watch_(watch),
        by_processor_(config.consistency == ConsistencyKind::kAdaptive),
        asked_s_(clock.now()) {}

  // The share of the time since the last call, or since the start; -1 if no time has passed.
  double measure() {
    { const PhaseScope now(watch_, Phase::kOther); }  // counts the phase that goes on, too
    const double busy_s = by_processor_
                              ? clock_.busy_s()
                              : watch_.seconds(Phase::kCompute) + watch_.seconds(Phase::kAggregate);
    const double now_s = clock_.now();
    const double share = now_s > asked_s_ ? (busy_s - busy_before_s_) / (now_s - asked_s_) : -1;
    busy_before_s_ = busy_s;
    asked_s_ = now_s;
    return std::min(1.0, share);
  }

 private:
  const Clock& clock_;
  Stopwatch& watch_;
  bool by_processor_;
  double busy_before_s_ = 0, asked_s_;
};

}  // namespace tutti::parameter_server

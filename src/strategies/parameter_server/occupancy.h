// How busy a worker was since its last pull, for rules that adapt to it.
#pragma once

#include <algorithm>

#include "strategies/parameter_server/config.h"
#include "strategies/strategy.h"

namespace tutti::parameter_server {

class Occupancy {
 public:
  Occupancy(Context& context, const Config& config)
      : context_(context),
        by_processor_(config.consistency == ConsistencyKind::kAdaptive),
        asked_s_(context.node.clock().now()) {}

  // The share of the time since the last call, or since the start; -1 if no time has passed.
  double measure() {
    { const PhaseScope now(context_.watch, Phase::kOther); }  // counts the phase that goes on, too
    const double busy_s =
        by_processor_
            ? context_.node.clock().busy_s()
            : context_.watch.seconds(Phase::kCompute) + context_.watch.seconds(Phase::kAggregate);
    const double now_s = context_.node.clock().now();
    const double share = now_s > asked_s_ ? (busy_s - busy_before_s_) / (now_s - asked_s_) : -1;
    busy_before_s_ = busy_s;
    asked_s_ = now_s;
    return std::min(1.0, share);
  }

 private:
  Context& context_;
  bool by_processor_;
  double busy_before_s_ = 0, asked_s_;
};

}  // namespace tutti::parameter_server

// [strategy] kind = "scheduled"
#pragma once

#include <string>

#include "strategies/scheduled/coordinates.h"
#include "strategies/strategy.h"

namespace tutti {

struct ScheduledConfig {
  CoordinateOrder schedule = CoordinateOrder::kPriority;
  int64_t parallel = 8;   // coordinates of a round, over all workers
  double conflict = 0.1;  // priority: correlation from which two are not updated at once
  double gap = 0;  // stop when the duality gap is below this share of the objective; 0: never
  std::string topology = "ring";  // how changes of the residual are summed
};

void visit(Visitor& visitor, ScheduledConfig& config);
// Throws ConfigError naming the settings that contradict each other.
void validate(const ScheduledConfig& config, const TaskConfig& task);

}  // namespace tutti

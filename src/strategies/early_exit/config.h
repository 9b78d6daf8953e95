// [strategy] kind = "early_exit"
#pragma once

#include <vector>

#include "strategies/strategy.h"

namespace tutti {

struct EarlyExitConfig {
  std::vector<int64_t> cuts;         // first layers of the tiers after the device; empty: chosen
  int64_t devices = 1;               // each with a share of the samples
  int64_t bits = 1;                  // of a value that goes on to the next tier; 32: as it is
  std::vector<double> exit_weights;  // of the exits' losses, from the device on; empty: 1 each
  std::vector<double> thresholds;    // of all exits but the last; empty: chosen on validation
  double tolerance = 0.002;          // chosen thresholds: accuracy that they may cost
};

void visit(Visitor& visitor, EarlyExitConfig& config);
// Throws ConfigError naming the settings that contradict each other.
void validate(const EarlyExitConfig& config, const TaskConfig& task, const ClusterConfig& cluster);

}  // namespace tutti

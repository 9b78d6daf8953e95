// [strategy] kind = "early_exit"
#pragma once

#include <string>
#include <vector>

#include "strategies/early_exit/fusion.h"
#include "strategies/strategy.h"

namespace tutti {

// What devices see: whole samples of a share, or parts of all.
enum class DeviceViews { kWhole, kParts };
constexpr auto words(DeviceViews) { return WordList<2>{"whole", "parts"}; }

struct EarlyExitConfig {
  std::vector<int64_t> cuts;        // first layers of the tiers after the device; empty: chosen
  int64_t devices = 1;              // in the first tier
  DeviceViews views = DeviceViews::kWhole;
  Fuse fuse_scores = Fuse::kMax;       // parts: how the scores of devices become one answer
  Fuse fuse_features = Fuse::kConcat;  // parts: how features of devices become one input
  int64_t bits = 1;                  // of a value that goes on to the next tier; 32: as it is
  std::vector<double> exit_weights;  // of the exits' losses, from the device on; empty: 1 each
  std::vector<double> thresholds;    // of all exits but the last; empty: chosen on validation
  double tolerance = 0.002;          // chosen thresholds: accuracy that they may cost
};

inline bool sees_parts(const EarlyExitConfig& config) {
  return config.views == DeviceViews::kParts;
}
// Counts the nodes below edge and cloud: the devices, and the aggregator of devices that see parts.
inline int64_t local_nodes(const EarlyExitConfig& config) {
  return config.devices + (sees_parts(config) ? 1 : 0);
}
inline int64_t tiers_of(const EarlyExitConfig& config, const ClusterConfig& cluster) {
  return cluster.workers - local_nodes(config) + 1;
}

void visit(Visitor& visitor, EarlyExitConfig& config);
// Throws ConfigError naming the settings that contradict each other.
void validate(const EarlyExitConfig& config, const TaskConfig& task, const ClusterConfig& cluster);

}  // namespace tutti

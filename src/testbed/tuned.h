// What a search for the best value of a setting found for one strategy (testbed/tuning.h): a part
// of compare.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/described.h"

namespace tutti {

// One run of the task with one value.
struct TuningTrial {
  double value = 0;
  std::string status;
  std::optional<double> to_target_s, quality, total_s, energy_j, wall_s;
  std::optional<uint64_t> samples;
};
void visit(RecordVisitor& visitor, TuningTrial& trial);

struct ComparedTuning {
  std::string setting;  // "optimizer.lr"
  std::string range;    // as it was given: "log:0.003:0.3"
  uint64_t seed = 0;    // of the trials
  double value = 0;     // what was chosen
  bool at_edge = false;
  std::optional<std::string> tried_by;  // the strategy that learns the same and was tried instead
  std::vector<TuningTrial> trials;      // from the least value to the greatest
  std::optional<double> total_s, energy_j, wall_s;  // of all trials
};
void visit(RecordVisitor& visitor, ComparedTuning& tuning);

}  // namespace tutti

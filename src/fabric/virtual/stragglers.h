// How much longer a computation takes on a slow node: a pure function of the seed, the node, the
// step that it is in, and the time. So all architectures meet the same slow steps.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/cluster.h"
#include "fabric/tag.h"

namespace tutti::simulation {

struct Delayed {
  double compute_s = 0;  // the processor is busy
  double pause_s = 0;    // it stands still
};

class Stragglers {
 public:
  // Those that name no node concern the ranks below `workers`.
  Stragglers(const std::vector<StragglerConfig>& stragglers, Rank workers, uint64_t seed);
  // A computation in step `step` of a node, which begins at `now_s` and would take `work_s`.
  Delayed delay(Rank rank, uint32_t step, double now_s, double work_s) const;

 private:
  double slowdown(const StragglerConfig& straggler, size_t index, Rank rank, uint32_t step,
                  double now_s) const;

  std::vector<StragglerConfig> slowing_;
  std::vector<StragglerConfig> pauses_;  // by time
  Rank workers_;
  uint64_t seed_;
};

}  // namespace tutti::simulation

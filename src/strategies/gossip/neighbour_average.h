// One round of gossip: send to some, hear from others, take the weighted mean.
#pragma once

#include <vector>

#include "core/bytes.h"
#include "strategies/gossip/graph.h"
#include "strategies/strategy.h"

namespace tutti {

class NeighbourAverage {
 public:
  // Without a watch phases are not timed.
  NeighbourAverage(Node& node, Stopwatch* watch, const GraphEntry& graph, uint64_t seed,
                   size_t count);
  // `values` must stay as they are until finish(). Every node starts the same rounds.
  void start(std::span<float> values, uint64_t round);
  void advance();  // never blocks
  void finish();   // throws FabricError when a peer is lost or late
  void average(std::span<float> values, uint64_t round) {
    start(values, round);
    finish();
  }

 private:
  void combine();

  Node& node_;
  Stopwatch* watch_;
  const GraphEntry& graph_;
  const uint64_t seed_;
  const size_t count_;
  std::span<float> values_;
  Mixing mixing_;
  std::vector<Buffer<float>> arrived_;  // as many as ever were needed at once
  std::vector<Handle> handles_;         // receives, then sends; last: cancelled first
};

}  // namespace tutti

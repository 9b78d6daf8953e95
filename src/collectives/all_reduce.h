// An all-reduce of one buffer that can be started, advanced without blocking and finished, so that
// it overlaps with the backward pass.
#pragma once

#include <memory>
#include <span>

#include "collectives/reduction.h"
#include "collectives/topology.h"
#include "fabric/node.h"
#include "fabric/stopwatch.h"

namespace tutti {

class AllReduce {
 public:
  virtual ~AllReduce() = default;
  // `data` must stay in place until the operation has finished. All members start their operations
  // in the same order.
  virtual void start(std::span<std::byte> data, Tag tag) = 0;
  virtual void advance() = 0;  // never blocks
  virtual void finish() = 0;   // throws FabricError when a peer is lost or late
};

// By messages, after these rounds. `watch` may be null: then phases are not timed.
std::unique_ptr<AllReduce> make_all_reduce(Node& node, Stopwatch* watch, Rounds rounds,
                                           const Reduction& reduction);
// The same after the rounds of a topology, in blocks where that is faster: only there, so that in a
// ring floats may be added in another order on another fabric.
std::unique_ptr<AllReduce> make_all_reduce(Node& node, Stopwatch* watch, RoundsOf topology,
                                           const Group& group, size_t count,
                                           const Reduction& reduction);
// The most bytes of a buffer that are under way at once between so many members of one host.
size_t most_under_way(size_t members);
// The rounds that it runs.
Rounds rounds_between(const Endpoint& endpoint, RoundsOf topology, const Group& group, size_t count,
                      size_t element_bytes);

// In the shared window, whose layout every member has alike: `data` is a part of it.
std::unique_ptr<AllReduce> make_direct_all_reduce(Node& node, Stopwatch* watch, Window& window,
                                                  const Reduction& reduction);

}  // namespace tutti

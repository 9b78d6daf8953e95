// What one stage gets from another, micro-batch after micro-batch: the receives of a pass, posted
// ahead so that bytes travel while the node computes.
#pragma once

#include <string>
#include <vector>

#include "core/bytes.h"
#include "fabric/node.h"
#include "fabric/stopwatch.h"

namespace tutti {

class Inbox {
 public:
  // Of messages from each of `from` in turn, with purpose and part; at most `depth` of them are
  // held at once. `what` says what they are, for errors: "stage 1 waits for the activation".
  Inbox(Node& node, Stopwatch& watch, std::vector<Rank> from, Purpose purpose, uint64_t part,
        size_t depth, std::string what);

  // The next pass: the number of floats of each micro-batch; 0: nothing comes. All of the pass
  // before have been released.
  void begin(uint64_t step, std::vector<size_t> sizes);
  // Micro-batches are taken in their order. Waits; throws FabricError naming what and whose it is.
  std::span<float> take(size_t micro_batch);
  // In the order they were taken: the memory is free for one that is still to come.
  void release(size_t micro_batch);

 private:
  void post();
  std::span<float> buffer(size_t micro_batch);
  Rank from(size_t micro_batch) const { return from_[micro_batch % from_.size()]; }

  Node& node_;
  Stopwatch& watch_;
  std::vector<Rank> from_;
  Purpose purpose_;
  uint64_t part_;
  size_t depth_;
  std::string what_;
  uint64_t step_ = 0;
  std::vector<size_t> sizes_;
  size_t capacity_ = 0;  // floats of a buffer
  size_t posted_ = 0, released_ = 0;
  Buffer<float> memory_;
  std::vector<Handle> handles_;  // by place in the ring; last member: cancelled first
};

}  // namespace tutti

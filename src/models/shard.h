// Shards: parts of layers that are computed side by side, each on a node of its own.
//
// Shoeybi et al., "Megatron-LM: training multi-billion parameter language models using model
// parallelism" (2019). Layers are split in pairs: the first by its outputs, the second by its
// inputs, so that what lies between them is never whole, and what comes out is a sum over shards.
// A pair costs one sum forward (kCombine) and one backward (kSpread). Attention is split by heads,
// convolutions by channels, embedding and scores by the codes and classes that they stand for.
// What is not split is computed by every shard alike, from the same bits: it stays the same.
#pragma once

#include <span>
#include <vector>

#include "models/architecture.h"

namespace tutti {

// What a shard needs the others for. Models know nothing of networks: who makes a shard says how.
// All shards call in the same order, and all get the same bits.
class ShardGroup {
 public:
  virtual ~ShardGroup() = default;
  virtual void sum(std::span<float> values) = 0;
  virtual void maximum(std::span<float> values) = 0;
};

// Layers that are split as one, and into how many equal units: a shard has some of these.
struct SplitRegion {
  Range layers;
  size_t units = 0;
};
// Those of a model for this many shards. What no region covers is not split: it would have to be
// whole before the next layer that could make it so, or there is less than a unit for each.
std::vector<SplitRegion> split_regions(const Architecture& whole, size_t shards);

// Where a model of shards can be cut into stages: not within a region.
std::vector<size_t> shard_cuts(const Architecture& whole, size_t shards);

// What one of `count` shards computes of a model or stage. It has as many parameters in the same
// order, some of them slices, and its layers keep their numbers.
Architecture shard_of(const Architecture& whole, size_t index, size_t count);

// A sum over shards within a pass of a shard: behind which layer, over how many values for each
// sample, and after how much arithmetic and how many layers since the one before.
struct ShardSum {
  size_t layer = 0;
  size_t values = 0;
  double flops = 0;
  size_t layers = 0;
};
std::vector<ShardSum> forward_sums(const Architecture& shard);
// Of the first stage without those below its first parameters, where nobody needs a gradient.
std::vector<ShardSum> backward_sums(const Architecture& shard);

}  // namespace tutti

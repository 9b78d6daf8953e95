// Between the parameters of a whole model and those of its shards.
#pragma once

#include <span>

#include "models/architecture.h"

namespace tutti {

// `whole` holds the values of the whole parameter that this one is a slice of, in memory order;
// `own` those of the slice.
void cut_slice(const Parameter& slice, std::span<const float> whole, std::span<float> own);
void paste_slice(const Parameter& slice, std::span<const float> own, std::span<float> whole);

// Writes the parameters of a shard to their places in those of `whole`, which it is a shard of.
void paste_shard(const Architecture& shard, std::span<const float> own, const Architecture& whole,
                 std::span<float> parameters);

}  // namespace tutti

// Who holds which parameters, and in which pieces gradients come.
#pragma once

#include <string>
#include <vector>

#include "core/range.h"
#include "models/architecture.h"
#include "strategies/parameter_server/config.h"
#include "strategies/plan.h"

namespace tutti::parameter_server {

// `number` ranges, in order, together all parameters. By bytes: of nearly equal size; by layers:
// cut at borders of parameters only, so that the largest is as small as possible.
std::vector<Range> make_shards(const Architecture& architecture, size_t number, ShardKind by);

// As the settings say; optimizers that need whole tensors get them.
std::vector<Range> make_shards(const Architecture& architecture, const Config& config,
                               const OptimizerConfig& optimizer);

// What servers add to a plan.
struct ServerDetail : PlanDetail {
  std::vector<Range> shards;
};

// The pieces of `shard` in which a backward pass makes its gradients ready, last layers first.
std::vector<Range> pieces_of(const Architecture& architecture, Range shard);

// The pieces of `shard` in which a forward pass needs its parameters, first layers first; small
// layers together, so that no message is smaller than what it costs.
std::vector<Range> forward_pieces_of(const Architecture& architecture, Range shard);

}  // namespace tutti::parameter_server

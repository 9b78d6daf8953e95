// Workers and servers that share a host need not send gradients and parameters.
//
// A worker has its gradient in its window, its outbox, where each server adds up its part; a server
// has its parameters in its window, where workers read them. Requests and replies remain messages:
// they say what lies where. Either side may lack its window, because a node was lost while they
// were opened or has come back since; that pair then sends everything.
//
// The model of a worker computes its gradients in the outbox itself, unless the next ones are
// computed while servers may still read those: then they are copied there.
#pragma once

#include <span>

#include "strategies/parameter_server/config.h"
#include "strategies/strategy.h"

namespace tutti::parameter_server {

// Plans a window on every node with the room that its role needs, unless servers have replicas. Not
// being able to share costs time and nothing else.
void plan_shared_memory(Plan& plan, const PlanInput& input, const Config& config,
                        const std::vector<Range>& shards);

// Where a worker's push `number` lies in its window, in bytes. The one before may be unread yet
// when pulls are asked for ahead: two then take turns.
size_t outbox_offset(size_t parameters, const Config& config, int64_t number);

// Where a server keeps what it gave to `worker` while others change its `elements` parameters,
// which lie before.
size_t staging_offset(size_t elements, int worker);

// `count` floats at `offset` of the window of `rank`; empty when they are not within it.
std::span<float> floats_in(Window& window, Rank rank, int64_t offset, size_t count);

}  // namespace tutti::parameter_server

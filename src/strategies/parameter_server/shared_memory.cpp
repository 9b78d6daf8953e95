#include "strategies/parameter_server/shared_memory.h"

#include <algorithm>

#include "core/bytes.h"
#include "core/error.h"
#include "strategies/parameter_server/consistency.h"
#include "strategies/parameter_server/layout.h"

namespace tutti::parameter_server {
namespace {

constexpr size_t kLine = 64;
size_t lines(size_t floats) { return (floats * sizeof(float) + kLine - 1) / kLine * kLine; }

// Nothing is computed before all servers have what was pushed, and that is what was computed last.
bool computes_in_outbox(const PlanInput& input, const Config& config) {
  return !config.prefetch && config.pull_every == 1 && !input.task.deterministic;
}

}  // namespace

void plan_shared_memory(Plan& plan, const PlanInput& input, const Config& config,
                        const std::vector<Range>& shards) {
  // What a chain of servers passes on is sent, and so is what a worker may have to say again.
  if (config.replicas > 0) return;
  // The rows of a batch lie apart: they are gathered into messages.
  if (input.architecture.row_width > 0) return;
  const size_t count = input.architecture.parameter_count;
  const auto workers = static_cast<size_t>(input.cluster.workers);
  const bool lockstep = make_consistency(config, input.cluster.workers)->lockstep();
  // The servers' window has their shard, a worker's its outboxes.
  for (size_t rank = 0; rank < plan.nodes.size(); ++rank) {
    const size_t room =
        rank < workers ? outbox_offset(count, config, 1) + lines(count)
                       : staging_offset(shards[rank - workers].size(),
                                        lockstep ? 0 : static_cast<int>(input.cluster.workers));
    plan.nodes[rank].window_bytes = std::max(kLine, room);
  }
  plan.sharing = Sharing::kIfPossible;
  plan.gradients_shared = computes_in_outbox(input, config);
}

size_t outbox_offset(size_t parameters, const Config& config, int64_t number) {
  return config.prefetch && number % 2 != 0 ? lines(parameters) : 0;
}

size_t staging_offset(size_t elements, int worker) {
  return lines(elements) * static_cast<size_t>(worker + 1);
}

std::span<float> floats_in(Window& window, Rank rank, int64_t offset, size_t count) {
  const std::span<std::byte> all = window.of(rank);
  const size_t bytes = count * sizeof(float);
  if (offset < 0 || offset % static_cast<int64_t>(kLine) != 0 || bytes > all.size() ||
      static_cast<size_t>(offset) > all.size() - bytes)
    return {};
  return values_in<float>(all.subspan(static_cast<size_t>(offset), bytes));
}

}  // namespace tutti::parameter_server

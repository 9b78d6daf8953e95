#include "strategies/parameter_server/shared_memory.h"

#include <algorithm>

#include "core/bytes.h"
#include "core/error.h"
#include "strategies/parameter_server/consistency.h"
#include "strategies/parameter_server/layout.h"

namespace tutti::parameter_server {
namespace {

constexpr size_t kLine = 64;
// All nodes are starting. One that does not come is lost or means no good; who waits for it longer
// only loses time.
constexpr double kOpening_s = 2;

size_t lines(size_t floats) { return (floats * sizeof(float) + kLine - 1) / kLine * kLine; }

// The servers' window has their shard, a worker's its outboxes.
size_t room_for(Rank server, const Plan& plan, const Config& config) {
  if (server < 0)
    return outbox_offset(plan.architecture.parameter_count, config, 1) +
           lines(plan.architecture.parameter_count);
  const auto shards = make_shards(plan.architecture, config, plan.optimizer);
  const size_t elements = shards[static_cast<size_t>(server)].size();
  const auto consistency = make_consistency(config, plan.cluster.workers);
  return staging_offset(elements,
                        consistency->lockstep() ? 0 : static_cast<int>(plan.cluster.workers));
}

// Nothing is computed before all servers have what was pushed, and that is what was computed last.
bool computes_in_outbox(const Plan& plan, const Config& config) {
  return !config.prefetch && config.pull_every == 1 && !plan.task.deterministic;
}

}  // namespace

SharedMemory open_shared_memory(Node& node, const Plan& plan, const Config& config, Log& log) {
  const Rank rank = node.endpoint().rank();
  const size_t count = plan.architecture.parameter_count;
  // What a chain of servers passes on is sent, and so is what a worker may have to say again.
  if (config.replicas > 0) return {};
  // Opening is collective, and the others have done it when a node comes back.
  if (node.membership().incarnation(rank) > 0) return {};
  // The rows of a batch lie apart: they are gathered into messages.
  if (plan.architecture.row_width > 0) return {};
  const Rank server = rank - static_cast<Rank>(plan.cluster.workers);
  try {
    Window* const window = node.endpoint().open_window(
        std::max(kLine, room_for(server, plan, config)), std::min(kOpening_s, node.timeout_s()));
    if (!window || server >= 0 || !computes_in_outbox(plan, config)) return {window, {}};
    return {window, floats_in(*window, rank, 0, count)};
  } catch (const FabricError& error) {
    log.warn(error.what());
    return {};
  }
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

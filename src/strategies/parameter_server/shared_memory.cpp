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

size_t room_for(const Context& context, const Config& config) {
  const Architecture& architecture = context.model.architecture();
  const Rank server = context.node.endpoint().rank() - static_cast<Rank>(context.cluster.workers);
  if (server < 0)
    return outbox_offset(architecture.parameter_count, config, 1) +
           lines(architecture.parameter_count);
  const auto shards = make_shards(architecture, config, context.optimizer);
  const size_t elements = shards[static_cast<size_t>(server)].size();
  const auto consistency = make_consistency(config, context.cluster.workers);
  return staging_offset(elements,
                        consistency->lockstep() ? 0 : static_cast<int>(context.cluster.workers));
}

}  // namespace

Window* open_shared_memory(Context& context, const Config& config) {
  Node& node = context.node;
  // What a chain of servers passes on is sent, and so is what a worker may have to say again.
  if (config.replicas > 0) return nullptr;
  // Opening is collective, and the others have done it when a node comes back.
  if (node.membership().incarnation(node.endpoint().rank()) > 0) return nullptr;
  // The rows of a batch lie apart: they are gathered into messages.
  if (context.model.architecture().row_width > 0) return nullptr;
  try {
    return node.endpoint().open_window(std::max(kLine, room_for(context, config)),
                                       std::min(kOpening_s, node.timeout_s()));
  } catch (const FabricError& error) {
    context.log.warn(error.what());
    return nullptr;
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

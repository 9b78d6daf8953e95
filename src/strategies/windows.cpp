#include "strategies/windows.h"

#include <algorithm>

#include "core/bytes.h"
#include "core/error.h"

namespace tutti {
namespace {

// All nodes are starting. One that does not come is lost or means no good; who waits for it longer
// only loses time.
constexpr double kOpening_s = 2;

Window* open_if_possible(Node& node, size_t bytes, Log& log) {
  // Opening is collective, and the others have done it when a node comes back.
  if (node.membership().incarnation(node.endpoint().rank()) > 0) return nullptr;
  try {
    return node.endpoint().open_window(bytes, std::min(kOpening_s, node.timeout_s()));
  } catch (const FabricError& error) {
    log.warn(error.what());
    return nullptr;
  }
}

Window* open_or_fail(Node& node, size_t bytes) {
  Window* const window = node.endpoint().open_window(bytes, node.timeout_s());
  if (!window)
    throw FabricError(FabricError::Kind::kUnavailable, kAnyRank,
                      "this strategy sums in shared memory, but the nodes are on several hosts");
  return window;
}

}  // namespace

SharedMemory open_windows(Node& node, const Plan& plan, Log& log) {
  if (plan.sharing == Sharing::kNone) return {};
  const Rank rank = node.endpoint().rank();
  const size_t bytes = plan.nodes[static_cast<size_t>(rank)].window_bytes;
  Window* const window = plan.sharing == Sharing::kIfPossible ? open_if_possible(node, bytes, log)
                                                              : open_or_fail(node, bytes);
  if (!window || !plan.gradients_shared || rank >= plan.workers) return {window, {}};
  return {window, values_in<float>(window->of(rank)).first(plan.architecture->parameter_count)};
}

}  // namespace tutti

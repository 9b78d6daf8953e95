#include "strategies/parameter_server/entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "core/error.h"

namespace tutti::parameter_server {

static_assert(std::is_trivially_copyable_v<Entry>);

void Entry::set(const Order& order) {
  TUTTI_CHECK(order.members.size() <= kMostMembers);
  epoch = order.epoch;
  count = static_cast<uint32_t>(order.members.size());
  std::copy(order.members.begin(), order.members.end(), members.begin());
}

namespace {

// All of the shard's parameters, or a row for each key that comes with it.
std::string fault_of_gradient(const Entry& entry, const EntryLimits& limits) {
  const uint64_t keys = entry.bytes / sizeof(uint64_t);
  if (entry.bytes % sizeof(uint64_t) != 0 || keys > limits.rows) return "a state without need";
  const uint64_t elements = limits.rows > 0 ? keys * limits.row_width : limits.elements;
  if (entry.elements != elements && (entry.elements != 0 || keys > 0))
    return "a gradient of another size";
  if (entry.updated > 1 || (entry.elements > 0 && !entry.updated)) return "a gradient for nothing";
  return "";
}

}  // namespace

std::string fault_of(const Entry& entry, size_t bytes, const EntryLimits& limits) {
  if (bytes < sizeof(Entry)) return fmt::format("{} bytes instead of {}", bytes, sizeof(Entry));
  if (entry.magic != kChainMagic) return "another protocol";
  if (entry.kind < Entry::kRequest || entry.kind >= Entry::kKinds) return "an unknown kind";
  if (entry.shard < 0 || entry.shard >= limits.shards) return "no such shard";
  if (entry.worker < 0 || entry.worker >= limits.workers) return "no such worker";
  if (entry.kind != Entry::kState)
    if (std::string fault = fault_of_gradient(entry, limits); !fault.empty()) return fault;
  if (entry.count > kMostMembers) return "too many members";
  for (uint32_t i = 0; i < entry.count; ++i)
    if (entry.members[i].rank < limits.first_server ||
        entry.members[i].rank >= limits.first_server + limits.servers)
      return "a member that is not a server";
  const Request& request = entry.request;
  if (request.count < 0 || request.count > limits.workers) return "a decision about nothing";
  const size_t decided = entry.kind == Entry::kBulletin ? static_cast<size_t>(request.count) : 0;
  if (bytes != sizeof(Entry) + decided * sizeof(Decided))
    return fmt::format("{} bytes with {} decided", bytes, decided);
  if (entry.kind != Entry::kRequest) return "";
  // The head has checked it against its own version, which may be ahead of the one here.
  const RequestLimits of_worker{.workers = limits.workers,
                                .shards = limits.shards,
                                .version = request.version,
                                .rows = limits.rows};
  return fault_of(request, sizeof(Request), entry.worker, of_worker);
}

}  // namespace tutti::parameter_server

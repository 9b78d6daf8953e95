#include "sparse/store_messages.h"

#include <fmt/format.h>

#include <type_traits>

namespace tutti {

static_assert(std::is_trivially_copyable_v<StoreRequest> &&
              std::is_trivially_copyable_v<StoreReply>);

std::string fault_of(const StoreRequest& request, size_t bytes, uint64_t sequence, size_t width) {
  if (bytes < sizeof(StoreRequest))
    return fmt::format("{} bytes instead of {}", bytes, sizeof(StoreRequest));
  if (request.magic != kStoreMagic) return "another protocol";
  if (request.flags == 0 || request.flags & ~uint32_t{StoreRequest::kKnownFlags} ||
      (request.flags & StoreRequest::kGoodbye && request.flags != StoreRequest::kGoodbye))
    return "unknown flags";
  if (request.sequence != sequence) return "a request out of order";
  if (request.keys > kMostStoreKeys)
    return fmt::format("{} keys; at most {}", request.keys, kMostStoreKeys);
  if (request.flags == StoreRequest::kGoodbye && request.keys > 0) return "a goodbye with keys";
  const bool together = request.flags & StoreRequest::kTogether;
  if (together && !may_go_together(request, width)) return "more keys and rows than go together";
  const size_t expected = together ? bytes_together(request, width) : sizeof(StoreRequest);
  if (bytes != expected) return fmt::format("{} bytes instead of {}", bytes, expected);
  return "";
}

std::string fault_of(const StoreReply& reply, size_t bytes, uint64_t sequence, size_t expected) {
  if (bytes < sizeof(StoreReply))
    return fmt::format("{} bytes instead of {}", bytes, sizeof(StoreReply));
  if (reply.magic != kStoreMagic) return "another protocol";
  if (reply.state != StoreReply::kDone && reply.state != StoreReply::kRefused)
    return "an unknown state";
  // Who is refused may not know which request it was for.
  if (reply.state == StoreReply::kDone && reply.sequence != sequence)
    return "an answer to another request";
  if (reply.state == StoreReply::kRefused) expected = sizeof(StoreReply);
  if (bytes != expected) return fmt::format("{} bytes instead of {}", bytes, expected);
  return "";
}

}  // namespace tutti

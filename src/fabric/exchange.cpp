#include "fabric/exchange.h"

#include <fmt/format.h>

namespace tutti {

void throw_not_done(const Node& node, const Completion& completion) {
  using Kind = FabricError::Kind;
  const std::string what = completion.tag.describe();
  switch (completion.state) {
    case State::kPeerLost:
      throw FabricError(Kind::kPeerLost, completion.peer,
                        fmt::format("lost rank {} while waiting for {}", completion.peer, what));
    case State::kTimedOut:
      throw FabricError(Kind::kTimedOut, completion.peer,
                        fmt::format("rank {} sent nothing for {} s while waiting for {}; if it is "
                                    "only slow, raise cluster.timeout",
                                    completion.peer, node.timeout_s(), what));
    case State::kTruncated:
      throw FabricError(Kind::kProtocol, completion.peer,
                        fmt::format("rank {} sent {} bytes, more than expected, for {}",
                                    completion.peer, completion.bytes, what));
    case State::kDone:
    case State::kPending:
    case State::kCancelled:
      break;
  }
  throw FabricError(Kind::kProtocol, completion.peer, fmt::format("cancelled: {}", what));
}

void receive(Node& node, Rank from, Tag tag, std::span<std::byte> buffer) {
  Handle handle = node.endpoint().receive(from, tag, buffer);
  const size_t bytes = finish(node, handle);
  if (bytes != buffer.size())
    throw FabricError(FabricError::Kind::kProtocol, from,
                      fmt::format("rank {} sent {} bytes instead of {} for {}", from, bytes,
                                  buffer.size(), tag.describe()));
}

}  // namespace tutti

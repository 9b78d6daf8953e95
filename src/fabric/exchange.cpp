#include "fabric/exchange.h"

#include <fmt/format.h>

namespace tutti {
namespace {

// A node that waits for several peers, or for any, cannot tell which one is late.
std::string name_of(Rank rank, const char* nobody) {
  return rank == kAnyRank ? nobody : fmt::format("rank {}", rank);
}

}  // namespace

void throw_not_done(const Node& node, const Completion& completion) {
  using Kind = FabricError::Kind;
  const std::string what = completion.tag.describe();
  switch (completion.state) {
    case State::kPeerLost:
      throw FabricError(
          Kind::kPeerLost, completion.peer,
          fmt::format("lost {} while waiting for {}", name_of(completion.peer, "a peer"), what));
    case State::kTimedOut:
      throw FabricError(Kind::kTimedOut, completion.peer,
                        completion.peer == kAnyRank  // several waits, and none ended
                            ? fmt::format("no rank sent anything for {} s; if they are only slow, "
                                          "raise cluster.timeout",
                                          node.timeout_s())
                            : fmt::format("rank {} sent nothing for {} s while waiting for {}; if "
                                          "it is only slow, raise cluster.timeout",
                                          completion.peer, node.timeout_s(), what));
    case State::kTruncated:
      throw FabricError(Kind::kProtocol, completion.peer,
                        fmt::format("{} sent {} bytes, more than expected, for {}",
                                    name_of(completion.peer, "a peer"), completion.bytes, what));
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

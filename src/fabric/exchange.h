// Waiting for what a synchronous strategy cannot do without: anything but success ends the run with
// an error that names the peer, what was waited for, and the step.
#pragma once

#include "core/error.h"
#include "fabric/node.h"

namespace tutti {

// Throws FabricError unless the completion is kDone; returns its bytes.
[[noreturn]] void throw_not_done(const Node& node, const Completion& completion);
inline size_t require_done(const Node& node, const Completion& completion) {
  if (completion.state != State::kDone) throw_not_done(node, completion);
  return completion.bytes;
}

inline size_t finish(Node& node, Handle& handle) {
  return require_done(node, node.endpoint().wait(handle, node.timeout_s()));
}

inline void send(Node& node, Rank to, Tag tag, std::span<const std::byte> data) {
  Handle handle = node.endpoint().send(to, tag, data);
  finish(node, handle);
}

// Receives exactly `buffer.size()` bytes; another size is a protocol error.
void receive(Node& node, Rank from, Tag tag, std::span<std::byte> buffer);

}  // namespace tutti

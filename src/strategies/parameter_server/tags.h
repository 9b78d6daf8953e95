// Tags of the messages between workers and servers, and among servers. `stream` says of which
// request to which shard a message is (Ring::stream); it counts on with the requests.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/tag.h"

namespace tutti::parameter_server {

enum class ControlPart : uint64_t {
  kRequest = 1,
  kReply = 2,
  kEntry = 4,           // of a shard's log, and its acknowledgements
  kNoticeToWorker = 5,  // who holds a shard; the step is the shard
  kRest = 6,            // of a state that moves, beside its floats
  kNoticeToServer = 7,
  kLife = 8,
  kSecured = 9,
  kKeys = 32,
};

inline Tag control_tag(uint64_t stream, ControlPart part) {
  return {Purpose::kControl, Tag::wrapped(stream), part};
}

// Between workers and servers.
inline Tag request_tag() { return {Purpose::kControl, 0, ControlPart::kRequest}; }
inline Tag reply_tag(uint64_t stream) { return control_tag(stream, ControlPart::kReply); }
inline Tag parameters_tag(uint64_t stream, size_t piece = 0) {
  return {Purpose::kParameters, Tag::wrapped(stream), piece};
}
inline Tag keys_tag(uint64_t stream) { return control_tag(stream, ControlPart::kKeys); }
inline Tag gradient_tag(uint64_t stream, size_t piece) {
  return {Purpose::kGradient, Tag::wrapped(stream), piece};
}
// Empty: the answer to kSecure.
inline Tag secured_tag(uint64_t stream) { return control_tag(stream, ControlPart::kSecured); }

// Notices to workers, by shard, and to servers.
inline Tag notice_tag(int shard) {
  return control_tag(static_cast<uint64_t>(shard), ControlPart::kNoticeToWorker);
}
inline Tag notice_tag() { return {Purpose::kControl, 0, ControlPart::kNoticeToServer}; }
// Never sent: who waits for one learns at once that its sender is lost.
inline Tag life_tag() { return {Purpose::kControl, 0, ControlPart::kLife}; }

// Between servers: entries and acknowledgements; the gradients of updates, and states.
inline Tag entry_tag() { return {Purpose::kControl, 0, ControlPart::kEntry}; }
inline Tag update_tag(uint64_t stream) { return {Purpose::kGradient, Tag::wrapped(stream)}; }
inline Tag rest_tag(uint64_t stream) { return control_tag(stream, ControlPart::kRest); }

}  // namespace tutti::parameter_server

// What travels between the key-value store's workers and servers, besides keys and rows: one fixed
// block each way, checked before anything is done with it. Keys and rows follow a request, rows
// follow a reply: in the same message if both messages are small, otherwise in messages of their
// own. Little endian, as on every machine this runs on.
#pragma once

#include <cstdint>
#include <string>

#include "fabric/node.h"
#include "fabric/tag.h"

namespace tutti {

inline constexpr uint32_t kStoreMagic = 0x31564b54;  // "TKV1"
// A server has no more than this of one worker in memory; larger lists go in parts.
inline constexpr uint64_t kMostStoreKeys = 1 << 20;

struct StoreRequest {
  enum Flag : uint32_t { kPush = 1, kPull = 2, kGoodbye = 4, kTogether = 8, kKnownFlags = 15 };
  uint32_t magic = kStoreMagic;
  uint32_t flags = 0;
  uint64_t sequence = 0;  // requests of this worker so far, this one included
  uint64_t keys = 0;      // how many follow; and, of a push, as many rows
};

struct StoreReply {
  enum State : uint32_t { kDone = 1, kRefused };
  uint32_t magic = kStoreMagic;
  uint32_t state = kDone;
  uint64_t sequence = 0;  // of the request
};

// Bytes of a request and of its reply with all keys and rows in them.
inline size_t bytes_together(const StoreRequest& request, size_t width) {
  const size_t row = request.flags & StoreRequest::kPush ? width * sizeof(float) : 0;
  return sizeof(StoreRequest) + request.keys * (sizeof(uint64_t) + row);
}
inline size_t reply_bytes_together(const StoreRequest& request, size_t width) {
  const size_t row = request.flags & StoreRequest::kPull ? width * sizeof(float) : 0;
  return sizeof(StoreReply) + request.keys * row;
}
// Of small messages the number costs, of large ones the copies that going together takes.
inline bool may_go_together(const StoreRequest& request, size_t width) {
  return request.keys <= kMostStoreKeys && bytes_together(request, width) <= kEagerBytes &&
         reply_bytes_together(request, width) <= kEagerBytes;
}

// Why the message cannot be meant, or "". `bytes` is what has arrived of it; rows have `width`
// values.
std::string fault_of(const StoreRequest& request, size_t bytes, uint64_t sequence, size_t width);
std::string fault_of(const StoreReply& reply, size_t bytes, uint64_t sequence, size_t expected);

enum class StorePart : uint64_t { kRequest = 16, kReply, kKeys };  // of purpose kControl
enum class StoreRowsPart : uint64_t { kRows = 16 };                // of those that carry rows

inline Tag store_request_tag() { return {Purpose::kControl, 0, StorePart::kRequest}; }
inline Tag store_reply_tag(uint64_t sequence) {
  return {Purpose::kControl, Tag::wrapped(sequence), StorePart::kReply};
}
inline Tag store_keys_tag(uint64_t sequence) {
  return {Purpose::kControl, Tag::wrapped(sequence), StorePart::kKeys};
}
inline Tag store_push_tag(uint64_t sequence) {
  return {Purpose::kGradient, Tag::wrapped(sequence), StoreRowsPart::kRows};
}
inline Tag store_pull_tag(uint64_t sequence) {
  return {Purpose::kParameters, Tag::wrapped(sequence), StoreRowsPart::kRows};
}

}  // namespace tutti

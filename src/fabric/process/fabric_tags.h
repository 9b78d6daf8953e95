// Tags of what two nodes tell each other about large messages and connections, beside the messages
// of their callers.
#pragma once

#include <cstdint>

#include "fabric/tag.h"

namespace tutti::process {

enum class FabricMessage : uint64_t {
  kPull,      // a piece of a message that its receiver could not fetch is asked for
  kPush,      // that piece
  kRequest,   // between hosts: the room in a receiver's buffer (courier.h)
  kSize,      // the bytes of a message, or that it was called back
  kPiece,     // of one
  kGreeting,  // the other side has connected
};

constexpr uint64_t bits_of(FabricMessage message) {
  return Tag(Purpose::kFabric, Tag::wrapped(static_cast<uint64_t>(message))).bits();
}

inline constexpr uint64_t kPullTag = bits_of(FabricMessage::kPull);
inline constexpr uint64_t kPushTag = bits_of(FabricMessage::kPush);
inline constexpr uint64_t kRequestTag = bits_of(FabricMessage::kRequest);
inline constexpr uint64_t kSizeTag = bits_of(FabricMessage::kSize);
inline constexpr uint64_t kPieceTag = bits_of(FabricMessage::kPiece);
inline constexpr uint64_t kGreetingTag = bits_of(FabricMessage::kGreeting);

}  // namespace tutti::process

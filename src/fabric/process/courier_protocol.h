// The messages by which both sides of a large transfer between hosts agree (courier.h).
#pragma once

#include <cstdint>

#include "fabric/node.h"
#include "fabric/process/fabric_tags.h"

namespace tutti::process {

// Small, so that what else is to be sent does not wait long.
inline constexpr size_t kPieceBytes = 2 * kEagerBytes;

// Words of a request beside the room in a buffer, and of a size.
inline constexpr uint64_t kEnough = ~uint64_t{0};
inline constexpr uint64_t kNone = ~uint64_t{0};

// Notices are numbered above the bits of a tag.
inline constexpr int kSerialShift = 40;
inline constexpr uint64_t kSerials = uint64_t{1} << (63 - kSerialShift);

}  // namespace tutti::process

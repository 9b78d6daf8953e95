// What the parts of courier.cpp share.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/process/courier.h"
#include "fabric/process/fabric_tags.h"
#include "fabric/process/loan.h"

namespace tutti::process {

// Few and small, so that what else is to be sent does not wait long.
inline constexpr size_t kPieceBytes = 2 * kEagerBytes;
inline constexpr size_t kPiecesUnderWay = 2;
// What is sent without being asked for: one message, and all to one peer.
inline constexpr size_t kPushBytes = size_t{1} << 20;
inline constexpr size_t kMostPushed = size_t{8} << 20;
inline constexpr size_t kMostUnderWay = size_t{512} << 10;

// Words of a request beside the room in a buffer, and of a size.
inline constexpr uint64_t kEnough = ~uint64_t{0};
inline constexpr uint64_t kNone = ~uint64_t{0};

inline constexpr int kSerialShift = 40;
inline constexpr uint64_t kSerials = uint64_t{1} << (63 - kSerialShift);

struct Courier::Delivery {
  Courier* courier = nullptr;
  Channel* channel = nullptr;
  Operation* operation = nullptr;
  uint64_t notice = 0;
  size_t moved = 0;
  std::vector<Piece*> under_way;  // in UCX's hands, whose callback deletes them
  bool claimed = false;
  bool stopped = false;  // no further pieces: the receiver has had enough
  bool broken = false;

  bool over() const { return under_way.empty() && (stopped || moved == operation->bytes); }
};

struct Courier::Piece {
  Delivery* delivery = nullptr;  // null: called back, or gone with its channel
  Loan loan;
};

// A copy, so that its operation can end before it has gone.
struct Courier::Parcel {
  Courier* courier;
  Channel* channel;
  Operation* operation;
  std::vector<std::byte> bytes;
};

struct Courier::Haul {
  Courier* courier = nullptr;
  Channel* channel = nullptr;
  Operation* operation = nullptr;  // null: cancelled, what comes is dropped
  uint64_t notice = 0;
  uint64_t room = 0;
  uint64_t size = kNone;
  size_t moved = 0;
  std::vector<std::byte> piece;
  void* request = nullptr;
  uint64_t size_word = 0;
  size_t came = 0;  // bytes, just now
  ucs_status_t status = UCS_OK;
};

struct Courier::Ear {
  Courier* courier = nullptr;
  Channel* channel = nullptr;
  uint64_t word = 0;
};

}  // namespace tutti::process

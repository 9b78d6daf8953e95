// The control protocol between a node and its launcher: framed messages over a stream.
//
// A frame is a fixed header (32 bytes, little endian) and a body:
//   u32 body bytes | u8 type | u8[3] zero | i32 rank | u32 incarnation | u64 number | u64 zero
// The reader checks a header before it takes memory for the body, and takes it only as bytes come
// in, so that a broken or hostile peer costs an error and nothing else. Nothing here assumes that
// the stream is local, except kWindow, which carries a file descriptor beside its frame.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/tag.h"

namespace tutti::process {

struct ControlMessage {
  enum class Type : uint8_t {
    kHello = 1,  // node: I am up. rank, incarnation
    kWelcome,    // launcher, first message to a node: body = Roster, number = losses that
                 // were made good; those that were not follow as kLost
    kAddress,    // node -> node, by way of the launcher: connect to this. rank = the other side,
                 // incarnation = of the node it is from, number = of the node it is for,
                 // body = a sealed address; once for each incarnation of each peer
    kReady,      // node: connected to all
    kStart,      // launcher: everybody is ready, run the body
    kLost,       // launcher: rank in that incarnation is no more
    kJoined,     // launcher: rank is back, in that incarnation
    kWindow,     // node -> all: rank's window of `number` bytes, with its file descriptor;
                 // incarnation = losses that its owner had heard of
    kStop,       // launcher: leave by InterruptedError
    kResult,     // node: body = outcome
    kBye,        // launcher: everybody has ended, exit
    kJoin,       // stranger, first message on a connection from elsewhere: let me be a node.
                 // number = protocol, body = token
    kAccepted,   // launcher: you are rank, in that incarnation. body = Invitation
    kRefused,    // launcher: go away. body = why
    kPing,       // both, now and then, between hosts: makes a dead connection show. From a node:
                 // number = steps that it has begun
  };
  Type type = Type::kHello;
  Rank rank = kAnyRank;
  uint32_t incarnation = 0;
  uint64_t number = 0;
  std::string body;
  friend bool operator==(const ControlMessage&, const ControlMessage&) = default;
};

inline constexpr size_t kFrameHeaderBytes = 32;
inline constexpr Rank kMaxRank = 65535;
// Both sides of a connection between hosts must speak the same; frames themselves never change.
inline constexpr uint64_t kProtocol = 3;
inline constexpr size_t kTokenLimit = 256;

// The largest body that a message of this type may have.
size_t body_limit(ControlMessage::Type type);

std::string encode(const ControlMessage& message);

// Takes a stream apart. Throws DataError on a frame that cannot be; it is then of no further use.
class FrameReader {
 public:
  void append(std::string_view bytes) { buffer_.append(bytes); }
  std::optional<ControlMessage> next();
  bool empty() const { return used_ == buffer_.size(); }

 private:
  std::string buffer_;
  size_t used_ = 0;
};

// Bodies. The decoders throw DataError on anything that the encoders could not have written.
std::string encode_outcome(const NodeOutcome& outcome);
NodeOutcome decode_outcome(std::string_view body);

// An address for UCX, which aborts the process that hands it bytes of another kind. So it is sealed
// where it is announced, and opened by the launcher, who can name the sender of nonsense, and again
// before use. This shows mistakes and damage; who forges a seal has shown the token before.
std::string seal_address(std::string_view address);
std::string open_address(std::string_view sealed);

struct Member {
  bool alive = true;
  uint32_t incarnation = 0;
  friend bool operator==(const Member&, const Member&) = default;
};
std::string encode_roster(const std::vector<Member>& members);
std::vector<Member> decode_roster(std::string_view body);

// What a node that joins from elsewhere is told; a forked one has it in its memory.
struct Invitation {
  std::vector<std::string> roles;
  std::vector<uint8_t> joined;  // per rank: 1 for those who join
  double timeout_s = 120;
  std::string briefing;  // the caller's own words
  friend bool operator==(const Invitation&, const Invitation&) = default;
};
std::string encode_invitation(const Invitation& invitation);
Invitation decode_invitation(std::string_view body);

}  // namespace tutti::process

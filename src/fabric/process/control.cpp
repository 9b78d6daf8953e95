#include "fabric/process/control.h"

#include <bit>
#include <cstring>

#include "core/error.h"
#include "core/printable.h"
#include "fabric/outcome.h"

namespace tutti::process {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are little endian");

// Results may hold the parameters of a model.
constexpr size_t kResultLimit = size_t{1} << 30;
constexpr size_t kSmallLimit = size_t{1} << 20;
constexpr size_t kAddressLimit = size_t{64} << 10;     // UCX needs some hundred bytes
constexpr size_t kInvitationLimit = size_t{16} << 20;  // a job, and a role per node
constexpr size_t kReasonLimit = 4096;
constexpr size_t kMemberBytes = 5;
constexpr size_t kOutcomeBytes = 20;
constexpr uint64_t kAddressMagic = 0x3172646461747574;  // "tutaddr1"

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T get(std::string_view& in) {
  T value;
  if (in.size() < sizeof value) throw DataError("control message is cut short");
  std::memcpy(&value, in.data(), sizeof value);
  in.remove_prefix(sizeof value);
  return value;
}

void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<uint64_t>(text.size()));
  out += text;
}

std::string get_text(std::string_view& in) {
  const auto bytes = get<uint64_t>(in);
  if (bytes > in.size()) throw DataError("control message is cut short");
  std::string text(in.substr(0, bytes));
  in.remove_prefix(bytes);
  return text;
}

// FNV-1a: finds every change of a single byte, and others but for one in 2^64.
uint64_t checksum(std::string_view bytes) {
  uint64_t sum = 0xcbf29ce484222325;
  for (const char byte : bytes) sum = (sum ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  return sum;
}

// What run_body() and a node that its user interrupts can say.
bool may_exit_with(NodeOutcome::Kind kind, int exit_code) {
  switch (kind) {
    case NodeOutcome::Kind::kDone:
      return exit_code == kExitDone;
    case NodeOutcome::Kind::kFailed:
      return exit_code >= kExitInternal && exit_code <= kExitPeerLost;
    case NodeOutcome::Kind::kLost:
      return exit_code == kExitPeerLost;
    case NodeOutcome::Kind::kInterrupted:
      return exit_code == kExitInterrupted;
  }
  return false;
}

}  // namespace

size_t body_limit(ControlMessage::Type type) {
  using Type = ControlMessage::Type;
  switch (type) {
    case Type::kResult:
      return kResultLimit;
    case Type::kWelcome:
      return kSmallLimit;
    case Type::kAddress:
      return kAddressLimit;
    case Type::kAccepted:
      return kInvitationLimit;
    case Type::kJoin:
      return kTokenLimit;
    case Type::kRefused:
      return kReasonLimit;
    case Type::kHello:
    case Type::kReady:
    case Type::kStart:
    case Type::kLost:
    case Type::kJoined:
    case Type::kWindow:
    case Type::kStop:
    case Type::kBye:
    case Type::kPing:
      return 0;
  }
  throw DataError("control message of unknown type");
}

std::string encode(const ControlMessage& message) {
  if (message.body.size() > body_limit(message.type))
    throw DataError("control message of " + std::to_string(message.body.size()) +
                    " bytes is beyond its limit");
  std::string out;
  out.reserve(kFrameHeaderBytes + message.body.size());
  put(out, static_cast<uint32_t>(message.body.size()));
  put(out, static_cast<uint32_t>(message.type));
  put(out, static_cast<int32_t>(message.rank));
  put(out, message.incarnation);
  put(out, message.number);
  put(out, uint64_t{0});
  return out += message.body;
}

std::optional<ControlMessage> FrameReader::next() {
  std::string_view in = std::string_view(buffer_).substr(used_);
  if (in.size() < kFrameHeaderBytes) return std::nullopt;
  const auto bytes = get<uint32_t>(in);
  const auto type = get<uint32_t>(in);
  if (type > 255) throw DataError("control frame is damaged");
  ControlMessage message;
  message.type = static_cast<ControlMessage::Type>(type);
  if (bytes > body_limit(message.type)) throw DataError("control frame is larger than it may be");
  message.rank = get<int32_t>(in);
  if (message.rank < kAnyRank || message.rank > kMaxRank)
    throw DataError("control frame names a rank that cannot be");
  message.incarnation = get<uint32_t>(in);
  message.number = get<uint64_t>(in);
  if (get<uint64_t>(in) != 0) throw DataError("control frame is damaged");
  if (in.size() < bytes) return std::nullopt;
  message.body = in.substr(0, bytes);
  used_ += kFrameHeaderBytes + bytes;
  if (used_ == buffer_.size() || used_ > kSmallLimit) {
    buffer_.erase(0, used_);
    used_ = 0;
  }
  return message;
}

std::string encode_outcome(const NodeOutcome& outcome) {
  std::string out;
  put(out, static_cast<uint32_t>(outcome.kind));
  put(out, static_cast<int32_t>(outcome.exit_code));
  put(out, static_cast<int32_t>(outcome.lost_peer));
  put(out, static_cast<uint64_t>(outcome.error.size()));
  return out + outcome.error + outcome.result;
}

NodeOutcome decode_outcome(std::string_view body) {
  if (body.size() < kOutcomeBytes) throw DataError("outcome is cut short");
  NodeOutcome outcome;
  const auto kind = get<uint32_t>(body);
  if (kind > static_cast<uint32_t>(NodeOutcome::Kind::kInterrupted))
    throw DataError("outcome of unknown kind");
  outcome.kind = static_cast<NodeOutcome::Kind>(kind);
  outcome.exit_code = get<int32_t>(body);
  if (!may_exit_with(outcome.kind, outcome.exit_code))
    throw DataError("outcome with exit code " + std::to_string(outcome.exit_code) +
                    ", which its kind cannot have");
  outcome.lost_peer = get<int32_t>(body);
  if (outcome.lost_peer < kAnyRank || outcome.lost_peer > kMaxRank)
    throw DataError("outcome names a lost rank that cannot be");
  const auto error_bytes = get<uint64_t>(body);
  if (error_bytes > body.size()) throw DataError("outcome is cut short");
  outcome.error = printable(body.substr(0, error_bytes));  // it may come from another machine
  outcome.result = body.substr(error_bytes);
  return outcome;
}

std::string seal_address(std::string_view address) {
  std::string out;
  put(out, kAddressMagic);
  put(out, checksum(address));
  put_text(out, address);
  return out;
}

std::string open_address(std::string_view sealed) {
  if (get<uint64_t>(sealed) != kAddressMagic) throw DataError("what was announced is no address");
  const auto sum = get<uint64_t>(sealed);
  std::string address = get_text(sealed);
  if (!sealed.empty() || address.empty() || checksum(address) != sum)
    throw DataError("an address was damaged on its way");
  return address;
}

std::string encode_roster(const std::vector<Member>& members) {
  std::string out;
  for (const Member& member : members) {
    put(out, static_cast<uint8_t>(member.alive));
    put(out, member.incarnation);
  }
  return out;
}

std::vector<Member> decode_roster(std::string_view body) {
  if (body.size() % kMemberBytes != 0) throw DataError("roster is cut short");
  std::vector<Member> members(body.size() / kMemberBytes);
  for (Member& member : members) {
    const auto alive = get<uint8_t>(body);
    if (alive > 1) throw DataError("roster is damaged");
    member.alive = alive == 1;
    member.incarnation = get<uint32_t>(body);
  }
  return members;
}

std::string encode_invitation(const Invitation& invitation) {
  std::string out;
  put(out, invitation.timeout_s);
  put_text(out, invitation.briefing);
  put(out, static_cast<uint32_t>(invitation.roles.size()));
  for (size_t rank = 0; rank < invitation.roles.size(); ++rank) {
    put(out, invitation.joined[rank]);
    put_text(out, invitation.roles[rank]);
  }
  return out;
}

Invitation decode_invitation(std::string_view body) {
  Invitation invitation;
  invitation.timeout_s = get<double>(body);
  if (!(invitation.timeout_s > 0)) throw DataError("invitation without a deadline");
  invitation.briefing = get_text(body);
  const auto nodes = get<uint32_t>(body);
  if (nodes > static_cast<uint32_t>(kMaxRank) + 1) throw DataError("invitation of too many nodes");
  for (uint32_t rank = 0; rank < nodes; ++rank) {
    invitation.joined.push_back(get<uint8_t>(body));
    if (invitation.joined.back() > 1) throw DataError("invitation is damaged");
    invitation.roles.push_back(get_text(body));
  }
  if (!body.empty()) throw DataError("invitation is damaged");
  return invitation;
}

}  // namespace tutti::process

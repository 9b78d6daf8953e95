#include "strategies/parameter_server/messages.h"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

namespace tutti::parameter_server {

static_assert(std::is_trivially_copyable_v<Request> && std::is_trivially_copyable_v<Reply> &&
              std::is_trivially_copyable_v<Decided> && std::is_trivially_copyable_v<Notice>);

namespace {

std::string fault_of(const Hand& hand, int most_parts) {
  if (hand.epoch < 0 || hand.step < 0 || hand.steps < 1) return "no such batch";
  if (hand.parts < 1 || hand.parts > most_parts || hand.part < 0 || hand.part >= most_parts)
    return "no such part of a batch";
  return "";
}

// Of a sparse model rows are all that is ever asked for.
std::string fault_of_rows(const Request& request, uint64_t rows) {
  if (request.keys < 0 || static_cast<uint64_t>(request.keys) > rows)
    return fmt::format("{} keys of {} rows", request.keys, rows);
  const bool asks = request.flags & Request::kRows;
  const uint32_t without = Request::kPush | Request::kHeaderOnly | Request::kInParts;
  if (asks && (rows == 0 || !(request.flags & Request::kPull) || request.flags & without))
    return "rows that cannot be asked for";
  const bool names_keys = asks || request.flags & Request::kPush;
  if (request.keys > 0 && !names_keys) return "keys of nothing";
  if (rows > 0 && request.flags & Request::kPull && !asks &&
      !(request.flags & Request::kHeaderOnly))
    return "a pull of all rows at once";
  if (rows > 0 && request.flags & Request::kInParts) return "rows in parts";
  return "";
}

std::string fault_of_push(const Request& request, const RequestLimits& limits) {
  if (request.version < 0 || request.version > limits.version)
    return fmt::format("a gradient of version {} at version {}", request.version, limits.version);
  if (request.steps < 1 || request.samples < 0) return "a gradient of nothing";
  if (!std::isfinite(request.read_s)) return "parameters that were never read";
  return fault_of(request.hand, limits.workers);
}

}  // namespace

std::string fault_of(const Request& request, size_t bytes, Rank from, const RequestLimits& limits) {
  if (bytes < sizeof(Request)) return fmt::format("{} bytes instead of {}", bytes, sizeof(Request));
  if (request.magic != kMagic) return "another protocol";
  if (request.flags & ~uint32_t{Request::kKnownFlags}) return "unknown flags";
  if (request.shard < 0 || request.shard >= limits.shards) return "no such shard";
  const uint32_t coordinating = request.flags & (Request::kDecision | Request::kKeep);
  if (coordinating) {
    const bool coordinates =
        from >= limits.coordinator && from <= limits.coordinator + limits.successors;
    if (!coordinates || request.flags != coordinating) return "only the first server decides";
    if (request.count < 0 || request.count > limits.workers || request.version < 0)
      return "a decision about nothing";
    const auto count = static_cast<size_t>(request.count);
    return bytes == sizeof(Request) + count * sizeof(Decided) ? "" : "a part of a decision";
  }
  if (bytes != sizeof(Request))
    return fmt::format("{} bytes instead of {}", bytes, sizeof(Request));
  if (from < 0 || from >= limits.workers) return "not a worker";
  if (request.flags == 0) return "a request for nothing";
  if (request.flags & Request::kSecure && request.flags != Request::kSecure)
    return "something else to do before a gradient is overwritten";
  if (request.clock < 0 || request.wanted < 0 || request.bound < 0 || request.bound > kMostBound ||
      request.forgiven < 0 || request.forgiven > kMostForgiven)
    return "numbers out of range";
  if (std::isnan(request.occupancy) || request.occupancy > 1.5) return "no share of time";
  if (request.share.begin > request.share.end) return "no such share of an evaluation";
  if (std::string fault = fault_of_rows(request, limits.rows); !fault.empty()) return fault;
  return request.flags & Request::kPush ? fault_of_push(request, limits) : "";
}

std::string fault_of(std::span<const Decided> decided, int workers) {
  for (const Decided& one : decided) {
    if (one.worker < 0 || one.worker >= workers) return "a decision about no worker";
    if (std::string fault = fault_of(one.hand, workers); !fault.empty()) return fault;
  }
  return "";
}

std::string fault_of(const Notice& notice, size_t bytes, Rank from, Rank first_server, int servers,
                     int shards) {
  const auto is_server = [&](Rank rank) {
    return rank >= first_server && rank < first_server + servers;
  };
  if (bytes != sizeof(Notice)) return fmt::format("{} bytes instead of {}", bytes, sizeof(Notice));
  if (notice.magic != kMagic) return "another protocol";
  if (!is_server(from)) return "not a server";
  if (notice.shard < 0 || notice.shard >= shards) return "no such shard";
  if (notice.count > kMostMembers || notice.led_since > notice.epoch) return "no such chain";
  for (uint32_t i = 0; i < notice.count; ++i)
    if (!is_server(notice.members[i].rank)) return "a member that is not a server";
  return "";
}

std::string fault_of(const Reply& reply, size_t bytes, uint64_t sequence, uint64_t elements) {
  if (bytes != sizeof(Reply)) return fmt::format("{} bytes instead of {}", bytes, sizeof(Reply));
  if (reply.magic != kMagic) return "another protocol";
  if (reply.kind < Reply::kCompute || reply.kind > Reply::kDiverged) return "an unknown kind";
  if (reply.sequence != sequence) return "an answer to another request";
  if (reply.elements != 0 && reply.elements != elements) return "another number of parameters";
  if (reply.offset < -1 || (reply.offset >= 0 && reply.elements == 0)) return "no such place";
  if (reply.forgiven < 0 || reply.forgiven > kMostForgiven) return "numbers out of range";
  if (reply.task.begin > reply.task.end) return "no such share of an evaluation";
  if (reply.kind == Reply::kCompute && reply.hand.steps > 0 && reply.hand.parts < 1)
    return "no such part of a batch";
  return "";
}

}  // namespace tutti::parameter_server

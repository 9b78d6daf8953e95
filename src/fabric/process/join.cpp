// The side of a node that joins a run from elsewhere.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>

#include "core/error.h"
#include "core/printable.h"
#include "fabric/outcome.h"
#include "fabric/process/process_fabric.h"
#include "fabric/process/process_node.h"
#include "fabric/process/tcp.h"

namespace tutti {
namespace {

using namespace process;
using Type = ControlMessage::Type;

// Shows the token and waits for the answer.
ControlMessage knock(ControlSocket& control, const JoinOptions& options,
                     const std::atomic<bool>& stop) {
  using Kind = FabricError::Kind;
  control.post({Type::kJoin, kAnyRank, 0, kProtocol, options.token});
  int64_t deadline_ns = deadline_after(options.timeout_s);
  while (monotonic_ns() < deadline_ns) {
    if (stop.load()) throw InterruptedError();
    pollfd answer{control.fd(), POLLIN, 0};
    poll(&answer, 1, 100);
    const bool open = control.fill();
    while (auto message = control.next()) {
      // It has let us in, and waits for the others.
      if (message->type == Type::kPing) {
        deadline_ns = deadline_after(options.timeout_s);
        continue;
      }
      if (message->type == Type::kAccepted) return *message;
      if (message->type == Type::kRefused)
        throw FabricError(Kind::kUnavailable, kAnyRank,
                          "the launcher refused: " + printable(message->body));
      throw FabricError(Kind::kProtocol, kAnyRank, "the launcher answered with something else");
    }
    if (!open)
      throw FabricError(Kind::kUnavailable, kAnyRank,
                        "the launcher hung up; is " + options.address + " where it waits?");
  }
  throw FabricError(
      Kind::kTimedOut, kAnyRank,
      fmt::format("no answer from {} within {} s", options.address, options.timeout_s));
}

struct Place {
  Rank rank;
  uint32_t incarnation;
  Invitation invitation;
};

// Lets itself be given a place; whatever listens at the address need not be a launcher.
Place enter(ControlSocket& control, const JoinOptions& options, const std::atomic<bool>& stop) {
  try {
    const ControlMessage accepted = knock(control, options, stop);
    Place place{accepted.rank, accepted.incarnation, decode_invitation(accepted.body)};
    const std::vector<uint8_t>& joined = place.invitation.joined;
    const auto seat = static_cast<size_t>(accepted.rank);
    if (accepted.rank < 0 || seat >= joined.size() || joined[seat] == 0)
      throw DataError(fmt::format("rank {} is none of those that join", accepted.rank));
    return place;
  } catch (const DataError& error) {
    throw FabricError(FabricError::Kind::kProtocol, kAnyRank,
                      fmt::format("{} answers as no launcher of this version does: {}",
                                  options.address, error.what()));
  }
}

}  // namespace

void join_process_fabric(const JoinOptions& options,
                         const std::function<Fabric::Body(const Joined&)>& prepare,
                         const std::function<void(const NodeOutcome&)>& leave,
                         const std::atomic<bool>& stop) {
  if (options.token.size() > kTokenLimit)
    throw ConfigError("token", fmt::format("a token has at most {} characters", kTokenLimit));
  FileDescriptor connection =
      dial(parse_host_port(options.address, "HOST:PORT"), options.timeout_s, &stop);
  break_when_silent(connection);
  const std::string interface = interface_of(connection);
  ControlSocket control(std::move(connection));
  const auto [rank, incarnation, invitation] = enter(control, options, stop);
  NodeSetup setup{
      rank, incarnation, &invitation.roles, invitation.timeout_s, {invitation.joined, interface},
      &stop};
  const int nodes = static_cast<int>(invitation.roles.size());
  Board board(nodes);
  board.set_start_ns(monotonic_ns());
  // Prepared before it says hello, so that the launcher waits for it; what fails is reported as
  // the failure of a body is.
  Fabric::Body body;
  try {
    body = prepare({rank, nodes, invitation.briefing});
  } catch (...) {
    body = [failure = std::current_exception()](Node&) -> std::string {
      std::rethrow_exception(failure);
    };
  }
  NodeOutcome outcome;
  try {
    outcome = take_part(setup, board, std::move(control), body);
  } catch (const InterruptedError& error) {  // by its own user, while it waited for the launcher
    outcome.kind = NodeOutcome::Kind::kInterrupted;
    outcome.exit_code = kExitInterrupted;
    outcome.error = error.what();
  } catch (const std::exception& error) {
    outcome.kind = NodeOutcome::Kind::kFailed;
    outcome.exit_code = kExitInternal;
    outcome.error = error.what();
  }
  leave(outcome);
  std::fflush(nullptr);
  _exit(outcome.exit_code);
}

}  // namespace tutti

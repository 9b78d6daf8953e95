// Nodes that are not forked but join from elsewhere: letting them in, and noticing that they are
// gone. Their connection is their life, as the process is a forked node's.
#include <fmt/format.h>

#include <algorithm>

#include "fabric/outcome.h"
#include "fabric/process/process_clock.h"
#include "fabric/process/reactor.h"
#include "fabric/process/supervisor.h"

namespace tutti::process {
namespace {

using Type = ControlMessage::Type;

constexpr int64_t kJoinedPingNs = 250'000'000;
// A node that computes does not read. Its system acknowledges for it, but has room for so much
// only; then the keepalive probes of TCP go on, which need none.
constexpr int kMostUnanswered = 64;

}  // namespace

bool Supervisor::gather() {
  lobby_.emplace(parse_host_port(options_.listen, "cluster.listen"));
  const int64_t until_ns = deadline_after(options_.join_timeout_s);
  for (Rank rank = 0; rank < size(); ++rank)
    if (child(rank).joins) wait_for(rank, until_ns);
  if (options_.invite) options_.invite(lobby_->address(), lobby_->token());
  const auto all_came = [&] {
    return std::all_of(children_.begin(), children_.end(),
                       [&](const Child& child) { return !child.joins || running(child); });
  };
  while (!all_came()) {
    supervise();
    if (stop_.load() || monotonic_ns() > until_ns) return false;
  }
  // Only now they get their ranks: who left while waiting for the others has bothered nobody.
  gathered_ = true;
  for (Rank rank = 0; rank < size(); ++rank)
    if (child(rank).joins) accept(rank);
  return true;
}

std::vector<NodeOutcome> Supervisor::nobody_came() {
  NodeOutcome outcome;
  if (stop_.load()) {
    outcome.kind = NodeOutcome::Kind::kInterrupted;
    outcome.exit_code = kExitInterrupted;
    outcome.error = "interrupted";
  } else {
    const auto came = std::count_if(children_.begin(), children_.end(), [&](const Child& child) {
      return child.joins && running(child);
    });
    outcome.kind = NodeOutcome::Kind::kLost;
    outcome.exit_code = kExitPeerLost;
    outcome.error = fmt::format(
        "{} of {} nodes joined within {} s; start the others with `tutti join {} --token ...` "
        "sooner, or raise cluster.join_timeout",
        came, options_.remote, options_.join_timeout_s, lobby_->address());
  }
  for (Rank rank = 0; rank < size(); ++rank)
    tell(rank, {Type::kRefused, rank, 0, kProtocol, outcome.error});
  return std::vector<NodeOutcome>(children_.size(), outcome);
}

void Supervisor::wait_for(Rank rank, int64_t until_ns) {
  Child& awaited = child(rank);
  awaited.control.reset();
  awaited.greeted = awaited.ready = false;
  awaited.heard_ns = 0;
  awaited.steps = 0;
  awaited.cut_off_for.clear();
  awaited.awaited_until_ns = until_ns;
}

void Supervisor::serve_lobby() {
  for (Lobby::Guest& guest : lobby_->serve()) admit(std::move(guest));
  // Of those who were lost in the run and could have been replaced.
  if (!started_) return;
  for (Rank rank = 0; rank < size(); ++rank) {
    Child& awaited = child(rank);
    const bool in_time = monotonic_ns() < awaited.awaited_until_ns && !stopping_;
    if (awaited.awaited_until_ns == 0 || in_time) continue;
    awaited.awaited_until_ns = 0;
    awaited.restarts_left = 0;
    end_or_restart(rank, "was lost, and nobody joined in its place");
  }
}

void Supervisor::admit(Lobby::Guest guest) {
  const auto free = std::find_if(children_.begin(), children_.end(), [](const Child& child) {
    return child.joins && child.awaited_until_ns != 0;
  });
  if (free == children_.end())
    return refuse(guest.connection, fmt::format("all {} places are taken", options_.remote));
  if (neighbourhood_.interface.empty()) neighbourhood_.interface = guest.interface;
  // Two nodes that came by different networks could not reach each other.
  if (neighbourhood_.interface != guest.interface)
    return refuse(guest.connection,
                  fmt::format("the others joined over the launcher's interface {}, this one over "
                              "{}; dial the same address from every machine",
                              neighbourhood_.interface, guest.interface));
  const auto rank = static_cast<Rank>(free - children_.begin());
  break_when_silent(guest.connection);
  free->control = std::make_unique<ControlSocket>(std::move(guest.connection));
  free->origin = guest.origin;
  free->awaited_until_ns = 0;
  free->unanswered = 0;
  if (gathered_) accept(rank);
}

void Supervisor::accept(Rank rank) {
  const Invitation invitation{roles_, neighbourhood_.joined, options_.timeout_s, options_.briefing};
  const uint32_t incarnation = child(rank).incarnation;
  tell(rank, {Type::kAccepted, rank, incarnation, 0, encode_invitation(invitation)});
  if (options_.welcome) options_.welcome(rank, child(rank).origin);
}

void Supervisor::ping() {
  if (monotonic_ns() < next_ping_ns_) return;
  next_ping_ns_ = monotonic_ns() + kJoinedPingNs;
  for (Rank rank = 0; rank < size(); ++rank) {
    if (!child(rank).joins || !running(child(rank))) continue;
    if (child(rank).unanswered++ < kMostUnanswered)
      tell(rank, {Type::kPing, rank, child(rank).incarnation, 0, {}});
  }
}

void Supervisor::part(Rank rank, const std::string& why) {
  // Before the run has begun its place is simply free again.
  if (!gathered_) return wait_for(rank, monotonic_ns());
  end_or_restart(rank, fmt::format("at {} {}", child(rank).origin, why));
}

}  // namespace tutti::process

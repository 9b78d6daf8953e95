#include "fabric/process/guests.h"

#include <fmt/format.h>

#include <algorithm>

#include "fabric/process/process_clock.h"
#include "fabric/process/reactor.h"

namespace tutti::process {
namespace {

constexpr int64_t kJoinedPingNs = 250'000'000;
// A node that computes does not read. Its system acknowledges for it, but has room for so much
// only; then the keepalive probes of TCP go on, which need none.
constexpr int kMostUnanswered = 64;

}  // namespace

Guests::Guests(const ProcessOptions& options, const std::vector<std::string>& roles,
               Children& children, Neighbourhood& neighbourhood, MessageRelay& relay)
    : options_(options),
      roles_(roles),
      children_(children),
      neighbourhood_(neighbourhood),
      relay_(relay),
      seated_(options.remote == 0) {
  neighbourhood_.joined.assign(roles.size(), 0);
  const Rank end = options.remote_end < 0 ? children.size() : options.remote_end;
  for (Rank rank = end - options.remote; rank < end; ++rank) {
    children[rank].joins = true;
    neighbourhood_.joined[static_cast<size_t>(rank)] = 1;
  }
}

void Guests::invite(int64_t until_ns) {
  lobby_.emplace(parse_host_port(options_.listen, "cluster.listen"));
  for (Rank rank = 0; rank < children_.size(); ++rank)
    if (children_[rank].joins) await(rank, until_ns);
  if (options_.invite) options_.invite(lobby_->address(), lobby_->token());
}

bool Guests::all_came() const {
  return std::all_of(children_.begin(), children_.end(),
                     [](const Child& child) { return !child.joins || child.running(); });
}

void Guests::seat() {
  seated_ = true;
  for (Rank rank = 0; rank < children_.size(); ++rank)
    if (children_[rank].joins) accept(rank);
}

std::string Guests::why_too_few() const {
  const auto came = std::count_if(children_.begin(), children_.end(), [](const Child& child) {
    return child.joins && child.running();
  });
  return fmt::format(
      "{} of {} nodes joined within {} s; start the others with `tutti join {} --token ...` "
      "sooner, or raise cluster.join_timeout",
      came, options_.remote, options_.join_timeout_s, lobby_->address());
}

void Guests::turn_away(const std::string& why) {
  for (Rank rank = 0; rank < children_.size(); ++rank)
    relay_.tell(rank, {ControlMessage::Type::kRefused, rank, 0, kProtocol, why});
}

void Guests::watch(std::vector<pollfd>& polled) const {
  if (lobby_) lobby_->watch(polled);
}

void Guests::serve() {
  if (!lobby_) return;
  for (Lobby::Guest& guest : lobby_->serve()) admit(std::move(guest));
  ping();
}

void Guests::await(Rank rank, int64_t until_ns) {
  Child& awaited = children_[rank];
  awaited.control.reset();
  awaited.begin();
  awaited.steps = 0;
  awaited.awaited_until_ns = until_ns;
}

std::vector<Rank> Guests::missed(bool stops) {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < children_.size(); ++rank) {
    Child& awaited = children_[rank];
    const bool in_time = monotonic_ns() < awaited.awaited_until_ns && !stops;
    if (awaited.awaited_until_ns == 0 || in_time) continue;
    awaited.awaited_until_ns = 0;
    awaited.restarts_left = 0;
    ranks.push_back(rank);
  }
  return ranks;
}

void Guests::close() {
  if (lobby_) lobby_->close();
}

void Guests::admit(Lobby::Guest guest) {
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
  if (seated_) accept(rank);
}

void Guests::accept(Rank rank) {
  const Invitation invitation{roles_, neighbourhood_.joined, options_.timeout_s, options_.briefing};
  const uint32_t incarnation = children_[rank].incarnation;
  relay_.tell(rank, {ControlMessage::Type::kAccepted, rank, incarnation, 0,
                     encode_invitation(invitation)});
  if (options_.welcome) options_.welcome(rank, children_[rank].origin);
}

void Guests::ping() {
  if (monotonic_ns() < next_ping_ns_) return;
  next_ping_ns_ = monotonic_ns() + kJoinedPingNs;
  for (Rank rank = 0; rank < children_.size(); ++rank) {
    Child& guest = children_[rank];
    if (!guest.joins || !guest.running()) continue;
    if (guest.unanswered++ < kMostUnanswered)
      relay_.tell(rank, {ControlMessage::Type::kPing, rank, guest.incarnation, 0, {}});
  }
}

}  // namespace tutti::process

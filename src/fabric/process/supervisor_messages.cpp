// What the launcher does with the messages of its nodes.
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "fabric/outcome.h"
#include "fabric/process/process_clock.h"
#include "fabric/process/supervisor.h"

namespace tutti::process {

using Type = ControlMessage::Type;

void Supervisor::tell(Rank rank, const Message& message, std::shared_ptr<FileDescriptor> attached) {
  Child& to = child(rank);
  if (!to.control || to.control->fd() < 0) return;
  to.control->post(message, std::move(attached));
  // After the message, so that who sees the new count finds the message too.
  board_.news().fetch_add(1, std::memory_order_release);
}

// Only nodes that were welcomed are told. The others hear it right after their welcome.
void Supervisor::tell_others(Rank about, const Message& message,
                             const std::shared_ptr<FileDescriptor>& attached) {
  for (Rank rank = 0; rank < size(); ++rank)
    if (rank != about && child(rank).greeted) tell(rank, message, attached);
}

void Supervisor::tell_lost(Rank rank) {
  Child& gone = child(rank);
  if (gone.lost) return;
  gone.lost = true;
  gone.lost_incarnation = gone.incarnation;
  // Collective openings that were under way cannot be completed; everybody forgets them.
  gone.lost_as = ++losses_;
  tell_others(rank, {Type::kLost, rank, gone.incarnation, 0, {}});
  gone.greeted = false;
}

// What a node may say when. Nothing but a hello comes from one that the others do not know, be it
// that it is new or that it has given up.
void Supervisor::check(Rank rank, const Message& message) {
  const Child& from = child(rank);
  if (message.type == Type::kPing) return;
  if (!gathered_) throw DataError("a node spoke before it was given a rank");
  if (message.type == Type::kHello && (from.greeted || from.ended))
    throw DataError("a node said hello twice");
  if (message.type != Type::kHello && !from.greeted)
    throw DataError("a node spoke before its hello or after it had given up");
  const bool of_itself = message.type != Type::kAddress;
  if (of_itself && message.rank != rank)
    throw DataError(message.rank == kAnyRank
                        ? "a node spoke without its rank"
                        : "a node spoke in the name of rank " + std::to_string(message.rank));
  const bool counts_losses = message.type == Type::kWindow;
  if (!counts_losses && message.incarnation != from.incarnation)
    throw DataError("a node spoke as incarnation " + std::to_string(message.incarnation) +
                    ", which it is not");
}

void Supervisor::handle(Rank rank, const Message& message) {
  Child& from = child(rank);
  from.unanswered = 0;
  if (from.joins) from.heard_ns = monotonic_ns();
  check(rank, message);
  switch (message.type) {
    case Type::kHello:
      greet(rank);
      break;
    case Type::kReady:
      from.ready = true;
      break;
    case Type::kAddress:
      forward_address(rank, message);
      break;
    case Type::kWindow:
      forward_window(rank, message);
      break;
    case Type::kResult:
      settle(rank, decode_outcome(message.body));
      break;
    case Type::kPing:
      from.steps = message.number;
      break;
    case Type::kJoin:
      throw DataError("a node asked to join twice");
    case Type::kAccepted:
    case Type::kRefused:
    case Type::kWelcome:
    case Type::kStart:
    case Type::kLost:
    case Type::kJoined:
    case Type::kStop:
    case Type::kBye:
      throw DataError("a node sent a message that only the launcher sends");
  }
}

void Supervisor::greet(Rank rank) {
  Child& fresh = child(rank);
  fresh.lost = false;
  fresh.announced_to.clear();
  // Lost nodes are announced as alive, and then as lost, in the order of their losses. So a node
  // that starts late sees the same events for the same reasons as the others.
  std::vector<Member> members;
  std::vector<Rank> lost;
  for (Rank other = 0; other < size(); ++other) {
    const Child& member = child(other);
    members.push_back({true, member.lost ? member.lost_incarnation : member.incarnation});
    if (member.lost) lost.push_back(other);
  }
  std::sort(lost.begin(), lost.end(),
            [&](Rank a, Rank b) { return child(a).lost_as < child(b).lost_as; });
  const uint64_t made_good = losses_ - lost.size();
  tell(rank, {Type::kWelcome, rank, fresh.incarnation, made_good, encode_roster(members)});
  for (const Rank other : lost)
    tell(rank, {Type::kLost, other, child(other).lost_incarnation, 0, {}});
  if (fresh.incarnation > 0) tell_others(rank, {Type::kJoined, rank, fresh.incarnation, 0, {}});
  fresh.greeted = true;
  for (const Message& message : std::exchange(fresh.early, {})) tell(rank, message);
}

void Supervisor::forward_address(Rank rank, const Message& message) {
  Child& from = child(rank);
  if (message.rank < 0 || message.rank >= size() || message.rank == rank)
    throw DataError(message.rank == kAnyRank
                        ? "a node announced an address to nobody"
                        : "a node announced an address to rank " + std::to_string(message.rank) +
                              ", who is no peer");
  open_address(message.body);  // or the receiver would be blamed for what it hands to UCX
  Child& to = child(message.rank);
  // For a member that is gone or has been replaced meanwhile it is of no use.
  if (to.lost || to.incarnation != message.number) return;
  const auto told = from.announced_to.find(message.rank);
  if (told != from.announced_to.end() && told->second == to.incarnation)
    throw DataError("a node announced its address twice to rank " + std::to_string(message.rank));
  from.announced_to[message.rank] = to.incarnation;
  const Message forwarded{Type::kAddress, rank, from.incarnation, 0, message.body};
  if (to.greeted)
    tell(message.rank, forwarded);
  else
    to.early.push_back(forwarded);
}

// Nobody has to be told later: who opens a window has heard of every loss and refuses while one is
// not made good, so all nodes are there, those that were started again too.
void Supervisor::forward_window(Rank rank, const Message& message) {
  auto memory = std::make_shared<FileDescriptor>(child(rank).control->take_descriptor());
  // Its owner had not heard of a loss that ended this opening; by now it has.
  if (message.incarnation != losses_) return;
  const Message forwarded{Type::kWindow, rank, 0, message.number, {}};
  tell(rank, forwarded, memory);
  tell_others(rank, forwarded, memory);
}

void Supervisor::settle(Rank rank, NodeOutcome outcome) {
  Child& from = child(rank);
  if (from.ended) throw DataError("a node sent two results");
  if (outcome.lost_peer >= size()) throw DataError("a node lost a peer that there is not");
  const bool gave_up = outcome.kind != NodeOutcome::Kind::kDone;
  // A node that names no lost peer gave up at its deadline.
  gave_up_ = gave_up_ || (outcome.exit_code == kExitPeerLost && outcome.lost_peer == kAnyRank);
  from.outcome = std::move(outcome);
  from.ended = true;
  // Nobody should wait for a node that has given up; in a stop all of them do.
  if (gave_up && !stopping_) tell_lost(rank);
}

}  // namespace tutti::process

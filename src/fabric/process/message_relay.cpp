#include "fabric/process/message_relay.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"

namespace tutti::process {

using Type = ControlMessage::Type;

void MessageRelay::tell(Rank rank, const ControlMessage& message,
                        std::shared_ptr<FileDescriptor> attached) {
  Child& to = children_[rank];
  if (!to.connected()) return;
  to.control->post(message, std::move(attached));
  // After the message, so that who sees the new count finds the message too.
  board_.news().fetch_add(1, std::memory_order_release);
}

void MessageRelay::flush(Rank rank) {
  if (!children_[rank].control) return;
  children_[rank].control->flush();
  board_.news().fetch_add(1, std::memory_order_release);
}

// Only nodes that were welcomed are told. The others hear it right after their welcome.
void MessageRelay::tell_others(Rank about, const ControlMessage& message,
                               const std::shared_ptr<FileDescriptor>& attached) {
  for (Rank rank = 0; rank < children_.size(); ++rank)
    if (rank != about && children_[rank].greeted) tell(rank, message, attached);
}

void MessageRelay::tell_lost(Rank rank) {
  Child& gone = children_[rank];
  if (gone.lost) return;
  gone.lost = true;
  gone.lost_incarnation = gone.incarnation;
  // Collective openings that were under way cannot be completed; everybody forgets them.
  gone.lost_as = ++losses_;
  tell_others(rank, {Type::kLost, rank, gone.incarnation, 0, {}});
  gone.greeted = false;
}

void MessageRelay::greet(Rank rank) {
  Child& fresh = children_[rank];
  fresh.lost = false;
  fresh.announced_to.clear();
  // Lost nodes are announced as alive, and then as lost, in the order of their losses. So a node
  // that starts late sees the same events for the same reasons as the others.
  std::vector<Member> members;
  std::vector<Rank> lost;
  for (Rank other = 0; other < children_.size(); ++other) {
    const Child& member = children_[other];
    members.push_back({true, member.lost ? member.lost_incarnation : member.incarnation});
    if (member.lost) lost.push_back(other);
  }
  std::sort(lost.begin(), lost.end(),
            [&](Rank a, Rank b) { return children_[a].lost_as < children_[b].lost_as; });
  const uint64_t made_good = losses_ - lost.size();
  tell(rank, {Type::kWelcome, rank, fresh.incarnation, made_good, encode_roster(members)});
  for (const Rank other : lost)
    tell(rank, {Type::kLost, other, children_[other].lost_incarnation, 0, {}});
  if (fresh.incarnation > 0) tell_others(rank, {Type::kJoined, rank, fresh.incarnation, 0, {}});
  fresh.greeted = true;
  for (const ControlMessage& message : std::exchange(fresh.early, {})) tell(rank, message);
}

void MessageRelay::forward_address(Rank rank, const ControlMessage& message) {
  Child& from = children_[rank];
  if (message.rank < 0 || message.rank >= children_.size() || message.rank == rank)
    throw DataError(message.rank == kAnyRank
                        ? "a node announced an address to nobody"
                        : "a node announced an address to rank " + std::to_string(message.rank) +
                              ", who is no peer");
  open_address(message.body);  // or the receiver would be blamed for what it hands to UCX
  Child& to = children_[message.rank];
  // For a member that is gone or has been replaced meanwhile it is of no use.
  if (to.lost || to.incarnation != message.number) return;
  const auto told = from.announced_to.find(message.rank);
  if (told != from.announced_to.end() && told->second == to.incarnation)
    throw DataError("a node announced its address twice to rank " + std::to_string(message.rank));
  from.announced_to[message.rank] = to.incarnation;
  const ControlMessage forwarded{Type::kAddress, rank, from.incarnation, 0, message.body};
  if (to.greeted)
    tell(message.rank, forwarded);
  else
    to.early.push_back(forwarded);
}

// Nobody has to be told later: who opens a window has heard of every loss and refuses while one is
// not made good, so all nodes are there, those that were started again too.
void MessageRelay::forward_window(Rank rank, const ControlMessage& message) {
  auto memory = std::make_shared<FileDescriptor>(children_[rank].control->take_descriptor());
  // Its owner had not heard of a loss that ended this opening; by now it has.
  if (message.incarnation != losses_) return;
  const ControlMessage forwarded{Type::kWindow, rank, 0, message.number, {}};
  tell(rank, forwarded, memory);
  tell_others(rank, forwarded, memory);
}

void check_message(const Child& from, Rank rank, const ControlMessage& message) {
  if (message.type == Type::kPing) return;
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

}  // namespace tutti::process

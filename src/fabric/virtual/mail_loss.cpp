// What the loss of a node does to the messages under way.
#include <algorithm>
#include <tuple>

#include "fabric/virtual/mail.h"

namespace tutti::simulation {

std::vector<uint64_t> Mail::messages_where(
    const std::function<bool(const Message&)>& wanted) const {
  std::vector<uint64_t> ids;
  for (const auto& [id, message] : messages_)
    if (wanted(message)) ids.push_back(id);
  std::sort(ids.begin(), ids.end());  // the map's own order is not to be relied upon
  return ids;
}

bool Mail::under_way_from(Rank rank) const {
  return std::any_of(messages_.begin(), messages_.end(), [&](const auto& entry) {
    const Message& message = entry.second;
    return message.from == rank && message.eager && !message.landed;
  });
}

void Mail::sever(const std::function<bool(Rank, Rank)>& lost) {
  const auto cut = [&](const Message& m) { return m.from != m.to && lost(m.from, m.to); };
  const auto under_way =
      messages_where([&](const Message& m) { return cut(m) && !(m.eager && m.offered); });
  for (const uint64_t id : under_way) {
    const Message& message = messages_.at(id);
    const auto [from, to, send, receive] =
        std::tuple(message.from, message.to, message.send, message.receive);
    drop(id);
    if (send) end(from, send, State::kPeerLost, to, 0);
    if (!receive) continue;
    // One that would take a message of anybody has not lost the peer that it waits for.
    if (box(to).operations.at(receive).completion.peer == kAnyRank)
      repost(to, receive);
    else
      end(to, receive, State::kPeerLost, from, 0);
  }
  // Small ones that had landed behind a lost large one.
  for (const uint64_t id : messages_where([&](const Message& m) { return cut(m) && m.receive; }))
    if (const auto found = messages_.find(id); found != messages_.end())
      advance(found->second.to, stream_key(found->second));
  for (Rank at = 0; at < static_cast<Rank>(boxes_.size()); ++at) sever_receives(at, lost);
}

void Mail::sever_receives(Rank at, const std::function<bool(Rank, Rank)>& lost) {
  std::vector<uint64_t> ids;
  for (const auto& [id, operation] : box(at).operations)
    if (!operation.is_send && operation.completion.state == State::kPending && !operation.message &&
        operation.completion.peer != kAnyRank && operation.completion.peer != at &&
        lost(operation.completion.peer, at))
      ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  for (const uint64_t id : ids) {
    const Completion pending = box(at).operations.at(id).completion;
    box(at).matching.withdraw_receive(pending.tag, id);
    end(at, id, State::kPeerLost, pending.peer, 0);
  }
}

void Mail::forget(Rank rank) {
  for (const uint64_t id : messages_where([&](const Message& m) { return m.to == rank; })) drop(id);
  box(rank) = Box();
}

void Mail::forget_from(Rank rank) {
  for (const uint64_t id : messages_where([&](const Message& m) { return m.from == rank; }))
    drop(id);
}

}  // namespace tutti::simulation

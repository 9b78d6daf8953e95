#include "fabric/process/process_membership.h"

#include <algorithm>

namespace tutti::process {

std::optional<MemberEvent> ProcessMembership::next_event() {
  refresh_();
  if (events_.empty()) return std::nullopt;
  const MemberEvent event = events_.front();
  events_.pop_front();
  return event;
}

std::optional<Rank> ProcessMembership::first_needed() const {
  const auto first = std::find_if(lost_.begin(), lost_.end(), [this](Rank rank) {
    return any_loss_ || std::find(needed_.begin(), needed_.end(), rank) != needed_.end();
  });
  return first == lost_.end() ? std::nullopt : std::optional(*first);
}

void ProcessMembership::lose(Rank rank) {
  Member& member = members_[static_cast<size_t>(rank)];
  if (!member.alive) return;
  member.alive = false;
  lost_.push_back(rank);
  events_.push_back({MemberEvent::Kind::kLost, rank, member.incarnation});
}

void ProcessMembership::join(Rank rank, uint32_t incarnation) {
  Member& member = members_[static_cast<size_t>(rank)];
  member = {true, incarnation};
  std::erase(lost_, rank);
  events_.push_back({MemberEvent::Kind::kJoined, rank, incarnation});
}

}  // namespace tutti::process

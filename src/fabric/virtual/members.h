// Who is alive, as one node sees it. Two nodes may disagree: those on either side of a partition.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "fabric/node.h"

namespace tutti::simulation {

class Members {
 public:
  bool alive(Rank rank) const { return std::find(lost_.begin(), lost_.end(), rank) == lost_.end(); }
  // Returns whose loss ends every wait: of those for whom that was asked, the one that was lost
  // first and is not back.
  std::optional<Rank> ends_waits() const {
    const auto first = std::find_if(lost_.begin(), lost_.end(), [this](Rank rank) {
      return end_waits_on_any_loss || std::find(needed.begin(), needed.end(), rank) != needed.end();
    });
    return first == lost_.end() ? std::nullopt : std::optional(*first);
  }

  // Who is to be named when the loss of `peer` ends a wait. Those who could not go on without a
  // lost node are lost, too.
  Rank named(Rank peer) const { return ends_waits().value_or(peer); }

  void lose(Rank rank, uint32_t incarnation) {
    lost_.push_back(rank);
    events_.push_back({MemberEvent::Kind::kLost, rank, incarnation});
  }
  void join(Rank rank, uint32_t incarnation) {
    std::erase(lost_, rank);
    events_.push_back({MemberEvent::Kind::kJoined, rank, incarnation});
  }
  void absent_from_the_start(Rank rank) { lost_.push_back(rank); }

  std::optional<MemberEvent> next_event() {
    if (events_.empty()) return std::nullopt;
    const MemberEvent event = events_.front();
    events_.erase(events_.begin());
    return event;
  }

  bool end_waits_on_any_loss = false;
  std::vector<Rank> needed;  // whose loss ends every wait, too

 private:
  std::vector<Rank> lost_;  // in the order of their loss; few, or the run is over anyway
  std::vector<MemberEvent> events_;
};

}  // namespace tutti::simulation

// Who is there, as the launcher tells it: every node hears of the same losses in the same order.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "fabric/node.h"
#include "fabric/process/control.h"

namespace tutti::process {

class ProcessMembership : public Membership {
 public:
  // `refresh` reads the mail, if there is any.
  ProcessMembership(std::vector<Member> members, std::function<void()> refresh)
      : members_(std::move(members)), refresh_(std::move(refresh)) {}

  bool alive(Rank rank) const override {
    refresh_();
    return members_.at(static_cast<size_t>(rank)).alive;
  }
  uint32_t incarnation(Rank rank) const override {
    refresh_();
    return members_.at(static_cast<size_t>(rank)).incarnation;
  }
  std::optional<MemberEvent> next_event() override;
  void end_waits_on_any_loss(bool on) override { any_loss_ = on; }
  void end_waits_on_loss_of(std::vector<Rank> ranks) override { needed_ = std::move(ranks); }

  void lose(Rank rank);
  void join(Rank rank, uint32_t incarnation);
  // Returns whose loss ends every wait: the first that is lost of those for whom that was asked.
  std::optional<Rank> ends_waits() const {
    return lost_.empty() ? std::nullopt : first_needed();  // asked while polling
  }
  // As far as the mail was read.
  const Member& known(Rank rank) const { return members_[static_cast<size_t>(rank)]; }
  std::optional<Rank> first_lost() const {
    return lost_.empty() ? std::nullopt : std::optional<Rank>(lost_.front());
  }

 private:
  std::optional<Rank> first_needed() const;

  std::vector<Member> members_;
  std::function<void()> refresh_;
  std::deque<MemberEvent> events_;
  std::deque<Rank> lost_;  // and not back, in order
  bool any_loss_ = false;
  std::vector<Rank> needed_;  // whose loss ends every wait, too
};

}  // namespace tutti::process

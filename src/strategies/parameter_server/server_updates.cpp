// How gradients become updates, and who is counted in.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "strategies/parameter_server/server.h"

namespace tutti::parameter_server {

void Server::finish_push(int index) {
  changed_ = true;
  if (shard_.rows() && !rows_arrived(index)) return;
  Worker& sender = worker(index);
  const Push push = *sender.push;
  sender.push.reset();
  ++sender.clock;
  const Request& request = push.request;
  if (request.flags & Request::kPull) {
    sender.pull = request;
    sender.waited = false;
  }
  if (request.flags & Request::kFinal) sender.finished = true;
  if (!consistency_->collects()) {
    apply_at_once(index, request, push.slot);
  } else {
    const Gathered gathered{request, index, push.slot};
    const bool late = request.version < version_;
    const bool again = std::any_of(gathered_.begin(), gathered_.end(), [&](const Gathered& other) {
      return other.push.hand == request.hand;
    });
    if (late || again)
      drop(gathered);
    else
      gathered_.push_back(gathered);
    try_to_close();
  }
  process_queue(index);
}

void Server::apply_at_once(int index, const Request& push, size_t slot) {
  const auto staleness = static_cast<double>(version_ - push.version);
  const auto workers = static_cast<double>(std::max<size_t>(1, present(true).size()));
  const int64_t behind = fastest() - (worker(index).base + worker(index).clock);
  const double factor = rate_factor(config_, staleness / workers, behind);
  shard_.apply({&slot, 1}, 1, factor * timetable_.rate(push.hand));
  shard_.free_slot(slot);
  ++version_;
  samples_ += push.samples;
  context_.recorder.count("pushes_applied");
  context_.recorder.applied(
      {.round = push.clock, .staleness = staleness, .age_s = node_.clock().now() - push.read_s});
  if (coordinates()) coordinator_->applied(index, push);
  updated();
}

void Server::drop(const Gathered& gathered) {
  shard_.free_slot(gathered.slot);
  context_.recorder.count("pushes_dropped");
  if (coordinates()) coordinator_->dropped(gathered.worker, gathered.push);
}

// The coordinator counts; where there is something to choose, the others do as it decides.
void Server::try_to_close() {
  if (!consistency_->collects()) return;
  const bool chooses = !consistency_->lockstep() && config_.servers > 1;
  while (!gathered_.empty()) {
    std::vector<Gathered> chosen;
    if (chooses && !coordinates()) {
      const auto decision = decisions_.find(version_);
      if (decision == decisions_.end()) return;
      if (shard_.rows() && forget_lost(decision->second)) continue;
      for (const Decided& decided : decision->second)
        for (const Gathered& gathered : gathered_)
          if (gathered.push.hand == decided.hand) chosen.push_back(gathered);
      if (chosen.size() < decision->second.size()) return repeat_orphans();
      decisions_.erase(decision);
    } else {
      const size_t quorum = consistency_->quorum(
          static_cast<size_t>(gathered_.front().push.hand.parts), present(true).size(),
          coordinates() ? coordinator_->left_in_epoch() : 0);
      if (gathered_.size() < std::max<size_t>(1, quorum)) {
        if (consistency_->lockstep()) return repeat_orphans();
        if (!everybody_waits()) return;
        chosen = gathered_;  // after losses: there will not be more
      }
      if (chosen.empty())
        chosen.assign(gathered_.begin(),
                      gathered_.begin() + static_cast<std::ptrdiff_t>(std::max<size_t>(1, quorum)));
    }
    close(std::move(chosen));
  }
}

// Of a sparse model nobody can repeat what a lost worker was to send here: the step does without.
// True when nothing is left of it.
bool Server::forget_lost(std::vector<Decided>& decided) {
  std::erase_if(decided, [&](const Decided& one) {
    return !worker(one.worker).present &&
           std::none_of(gathered_.begin(), gathered_.end(),
                        [&](const Gathered& gathered) { return gathered.push.hand == one.hand; });
  });
  if (!decided.empty()) return false;
  decisions_.erase(version_++);
  updated();
  return true;
}

bool Server::everybody_waits() const {
  return std::all_of(workers_.begin(), workers_.end(), [&](const Worker& worker) {
    return !worker.present || worker.finished || worker.pull;
  });
}

// What a lost worker was to compute, somebody else computes again. All who wait for the next
// version still have this one.
void Server::repeat_orphans() {
  const auto have = [&](const Hand& hand) {
    return std::any_of(gathered_.begin(), gathered_.end(),
                       [&](const Gathered& gathered) { return gathered.push.hand == hand; });
  };
  if (!consistency_->lockstep()) {
    for (const Decided& decided : decisions_[version_])
      if (!have(decided.hand) && !worker(decided.worker).present) ask_to_repeat(decided.hand);
    return;
  }
  if (!everybody_waits()) return;
  // Shares of their own go with their workers; the step has to do without.
  // So do rows: who is left has not read those that the lost worker touched.
  if (context_.task.partition != "global" || shard_.rows()) return close(gathered_);
  Hand hand = gathered_.front().push.hand;
  for (hand.part = 0; hand.part < hand.parts; ++hand.part)
    if (!have(hand)) ask_to_repeat(hand);
}

void Server::ask_to_repeat(const Hand& hand) {
  const auto count = static_cast<int>(workers_.size());
  for (int i = 0; i < count; ++i) {
    const int index = (hand.part + i) % count;
    Worker& candidate = worker(index);
    if (!candidate.present || !candidate.pull || candidate.pull->wanted != version_ + 1) continue;
    Reply reply;
    reply.kind = Reply::kRepeat;
    reply.hand = hand;
    reply.version = version_;
    reply.accounted = candidate.clock;
    context_.recorder.count("gradients_repeated");
    return send_reply(index, reply, {});
  }
}

void Server::close(std::vector<Gathered> chosen) {
  std::sort(chosen.begin(), chosen.end(),
            [](const Gathered& a, const Gathered& b) { return a.push.hand < b.push.hand; });
  if (coordinates() && config_.servers > 1 && !consistency_->lockstep()) {
    Announcement announcement;
    announcement.request.flags = Request::kDecision;
    announcement.request.version = version_;
    announcement.request.count = static_cast<int32_t>(chosen.size());
    for (const Gathered& gathered : chosen)
      announcement.decided.push_back({gathered.push.hand, gathered.worker});
    announce(std::move(announcement));
  }
  std::vector<size_t> slots;
  double weight = 0;
  for (const Gathered& gathered : chosen) {
    slots.push_back(gathered.slot);
    weight += timetable_.weight(gathered.push.hand, gathered.push.samples);
    std::erase_if(gathered_, [&](const Gathered& other) { return other.slot == gathered.slot; });
  }
  // In lockstep the shares are a whole batch and already divided by its size.
  const double factor = consistency_->lockstep() || weight <= 0 ? 1 : 1 / weight;
  shard_.apply(slots, factor, timetable_.rate(chosen.back().push.hand));
  ++version_;
  for (const Gathered& gathered : chosen) {
    shard_.free_slot(gathered.slot);
    samples_ += gathered.push.samples;
    context_.recorder.count("pushes_applied");
    context_.recorder.applied(
        {.round = version_, .staleness = 0, .age_s = node_.clock().now() - gathered.push.read_s});
    if (coordinates()) coordinator_->applied(gathered.worker, gathered.push);
  }
  for (const Gathered& late : std::exchange(gathered_, {})) drop(late);
  context_.recorder.count("steps_closed");
  updated();
}

void Server::updated() {
  changed_ = true;
  if (coordinates() && coordinator_->updated(version_, present(true))) {
    to_keep_ = coordinator_->evaluation();
    keep_at_ = version_;
    Announcement announcement;
    announcement.request.flags = Request::kKeep;
    announcement.request.version = version_;
    announcement.request.share.id = to_keep_;
    if (config_.servers > 1) announce(std::move(announcement));
  }
  if (to_keep_ > kept_ && version_ >= keep_at_) {
    shard_.keep();
    kept_ = to_keep_;
  }
}

void Server::announce(Announcement announcement) {
  constexpr size_t kUnderWay = 64;  // small messages: those before are gone
  if (announcements_.size() >= kUnderWay) announcements_.pop_front();
  announcements_.push_back(std::move(announcement));
  Announcement& kept = announcements_.back();
  for (Rank server = first_server_ + 1; server < node_.endpoint().size(); ++server) {
    kept.sending.push_back(node_.endpoint().send(
        server, request_tag(), std::as_bytes(std::span<const Request>(&kept.request, 1))));
    if (kept.request.flags & Request::kDecision)
      kept.sending.push_back(
          node_.endpoint().send(server, decision_tag(kept.request.version),
                                std::as_bytes(std::span<const Decided>(kept.decided))));
  }
}

}  // namespace tutti::parameter_server

// How gradients become updates, and who is counted in.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "strategies/parameter_server/server.h"

namespace tutti::parameter_server {

void Server::finish_push(int index) {
  if (shard_.rows() && !rows_make_sense(index)) return;
  Worker& sender = worker(index);
  const Push push = *sender.push;
  if (push.request.sequence > sender.executed)
    return input({.kind = Entry::kRequest, .worker = index, .request = push.request});
  // The head before had it too; if it was not yet applied, that one alone.
  sender.push.reset();
  if (push.request.flags & Request::kRows) {
    take_keys(index, push.slot);
    return answer_again(index, push.request);
  }
  local_.count("pushes_resent");
  answer_again(index, push.request);
  for (Gathered& gathered : gathered_) {
    if (gathered.worker != index || gathered.push.sequence != push.request.sequence ||
        gathered.slot != kNoSlot)
      continue;
    gathered.slot = push.slot;
    return input({.kind = Entry::kDelivered, .worker = index});
  }
  free(push.slot);
}

void Server::take_push(int index, const Request& request, size_t slot) {
  ++worker(index).clock;
  if (!consistency_->collects()) return apply_at_once(index, request, slot);
  const Gathered gathered{request, index, slot};
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

// The head adds up and sends the sum along; who comes after takes the same step with it.
void Server::update(std::span<const size_t> slots, double factor, double rate) {
  ++updates_;
  if (shard_.rows()) return update_rows(slots, factor, rate);
  Chain::Item& item = *current_;
  if (replaying_) return shard_.apply(item.values.span(), rate);
  item.entry.updated = 1;
  const std::span<const float> gradient = shard_.apply(slots, factor, rate);
  if (!chain_.has_successor() || gradient.empty()) return;
  item.entry.elements = gradient.size();
  item.values = Buffer<float>(gradient.size());
  if (!node_.clock().cost_only())
    std::copy(gradient.begin(), gradient.end(), item.values.span().begin());
  node_.clock().charge({.flops = 0, .memory_bytes = 8.0 * static_cast<double>(gradient.size())});
}

// All servers in the chain get the gradient itself, because all of them keep the sums of clocks. A
// gradient is that of its part divided by the number of parts, so multiplying it by that number
// gives the worker's own update.
void Server::update_mean(const Request& push, int64_t clock, size_t slot) {
  ++updates_;
  Chain::Item& item = *current_;
  const bool cost_only = node_.clock().cost_only();
  std::span<const float> gradient = item.values.span();
  if (!replaying_) {
    item.entry.updated = 1;
    gradient = values_in<float>(shard_.slot(slot));
    if (chain_.has_successor() && !gradient.empty()) {
      item.entry.elements = gradient.size();
      item.values = Buffer<float>(gradient.size());
      if (!cost_only) std::copy(gradient.begin(), gradient.end(), item.values.span().begin());
    }
  }
  const double rate = timetable_.rate(push.hand);
  if (cost_only) gradient = {};
  shard_.apply(means_.revise(clock, gradient, push.hand.parts, rate), rate);
  node_.clock().charge({.flops = 0, .memory_bytes = 16.0 * static_cast<double>(elements())});
  means_.forget_before(oldest());
}

void Server::free(size_t slot) {
  if (slot != kNoSlot) shard_.free_slot(slot);
}

void Server::apply_at_once(int index, const Request& push, size_t slot) {
  const auto staleness = static_cast<double>(version_ - push.version);
  const int64_t behind = fastest() - (worker(index).lead() + worker(index).clock);
  // The batch was cut into this many parts, even if workers have been lost since.
  const double factor = rate_factor(config_, push.hand.parts, staleness / push.hand.parts, behind);
  if (config_.rate == "dynamic")
    update_mean(push, worker(index).lead() + worker(index).clock - 1, slot);
  else
    update({&slot, 1}, 1, factor * timetable_.rate(push.hand));
  free(slot);
  ++version_;
  samples_ += push.samples;
  context_.recorder.count("pushes_applied");
  if (!replaying_)
    local_.applied(
        {.round = push.clock, .staleness = staleness, .age_s = node_.clock().now() - push.read_s});
  if (coordinates()) coordinator_->applied(index, push);
  take_snapshot();
  updated();
}

void Server::drop(const Gathered& gathered) {
  free(gathered.slot);
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
    if (!may_close(chosen)) return;
    close(std::move(chosen));
  }
}

// The head needs all gradients; it may have taken over from one that had them.
bool Server::may_close(const std::vector<Gathered>& chosen) const {
  if (replaying_) return current_->entry.updated && updates_ == 0;
  return std::none_of(chosen.begin(), chosen.end(),
                      [](const Gathered& gathered) { return gathered.slot == kNoSlot; });
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
  take_snapshot();
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
  if (context_.task.partition != Partition::kGlobal || shard_.rows()) {
    if (may_close(gathered_)) close(gathered_);
    return;
  }
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
    if (candidate.pull->version != version_) continue;  // it came back and never read this version
    Reply reply;
    reply.kind = Reply::kRepeat;
    reply.hand = hand;
    reply.version = version_;
    reply.accounted = candidate.clock;
    context_.recorder.count("gradients_repeated");
    secure(index);
    return send_reply(index, reply, {});
  }
}

void Server::close(std::vector<Gathered> chosen) {
  std::sort(chosen.begin(), chosen.end(),
            [](const Gathered& a, const Gathered& b) { return a.push.hand < b.push.hand; });
  if (coordinates() && config_.servers > 1 && !consistency_->lockstep()) {
    Request decision;
    decision.flags = Request::kDecision;
    decision.version = version_;
    decision.count = static_cast<int32_t>(chosen.size());
    std::vector<Decided> decided;
    decided.reserve(chosen.size());
    for (const Gathered& gathered : chosen)
      decided.push_back({gathered.push.hand, gathered.worker});
    announce(decision, std::move(decided));
  }
  std::vector<size_t> slots;
  double weight = 0;
  for (const Gathered& gathered : chosen) {
    slots.push_back(gathered.slot);
    weight += timetable_.weight(gathered.push.hand, gathered.push.samples);
    std::erase_if(gathered_,
                  [&](const Gathered& other) { return other.push.hand == gathered.push.hand; });
  }
  // In lockstep the shares are a whole batch and already divided by its size.
  const double factor = consistency_->lockstep() || weight <= 0 ? 1 : 1 / weight;
  update(slots, factor, timetable_.rate(chosen.back().push.hand));
  decisions_.erase(version_++);
  for (const Gathered& gathered : chosen) {
    free(gathered.slot);
    samples_ += gathered.push.samples;
    context_.recorder.count("pushes_applied");
    if (!replaying_)
      local_.applied(
          {.round = version_, .staleness = 0, .age_s = node_.clock().now() - gathered.push.read_s});
    if (coordinates()) coordinator_->applied(gathered.worker, gathered.push);
  }
  for (const Gathered& late : std::exchange(gathered_, {})) drop(late);
  context_.recorder.count("steps_closed");
  take_snapshot();
  updated();
}

void Server::updated() {
  changed_ = true;
  if (coordinates() && coordinator_->updated(version_, present(true))) {
    to_keep_ = coordinator_->evaluation();
    keep_at_ = version_;
    Request keep;
    keep.flags = Request::kKeep;
    keep.version = version_;
    keep.share.id = to_keep_;
    if (config_.servers > 1) announce(keep);
  }
  if (to_keep_ > kept_ && version_ >= keep_at_) {
    shard_.keep();
    kept_ = to_keep_;
  }
}

void Server::announce(const Request& request, std::vector<Decided> decided) {
  constexpr size_t kRemembered = 64;  // no shard is that many steps behind
  if (bulletins_.size() >= kRemembered) bulletins_.pop_front();
  bulletins_.push_back({current_->entry.index, request, std::move(decided)});
}

}  // namespace tutti::parameter_server

#include "strategies/parameter_server/shard_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace tutti::parameter_server {
namespace {

std::unique_ptr<Coordinator> make_coordinator(const StateSettings& settings,
                                              const Consistency& consistency,
                                              const Timetable& timetable) {
  if (!settings.coordinates()) return nullptr;
  return std::make_unique<Coordinator>(settings, consistency, timetable);
}

}  // namespace

ShardState::ShardState(StateSettings settings)
    : settings_(std::move(settings)),
      timetable_(settings_.task, settings_.optimizer, settings_.training),
      consistency_(make_consistency(settings_.config, settings_.workers)),
      workers_(settings_.workers),
      coordinator_(make_coordinator(settings_, *consistency_, timetable_)),
      versions_(settings_, timetable_, *consistency_, workers_, coordinator_.get()),
      rules_(settings_, versions_, *consistency_, workers_, coordinator_.get()) {}

std::vector<Output> ShardState::apply(const Input& input) {
  const Entry& entry = input.entry;
  Turn turn{input};
  if (entry.kind == Entry::kRequest)
    take(turn, entry.worker, entry.request);
  else if (entry.kind == Entry::kLost)
    lose(turn, entry.worker);
  else if (entry.kind == Entry::kJoined)
    join(turn, entry.worker, entry.incarnation);
  else if (entry.kind == Entry::kExpelled)
    expel(turn, entry.worker, "see above");
  else if (entry.kind == Entry::kDelivered)
    close_step(turn);
  else if (entry.kind == Entry::kBulletin && versions_.obey(turn, entry.request, input.decided))
    close_step(turn);
  else if (entry.kind == Entry::kForgotten) {
    versions_.forget(turn, {entry.worker, entry.request.sequence});
    close_step(turn);
  } else if (entry.kind == Entry::kClosed) {
    closed_ = true;
    if (settings_.sparse()) turn.count("rows_made", input.rows);
  }
  answer_all(turn);
  if (entry.kind == Entry::kRequest && !(entry.request.flags & Request::kPush)) {
    close_step(turn);  // now that this worker waits too, all may wait for a lost one
    answer_all(turn);
  }
  const int expected = input.replayed ? static_cast<int>(entry.updated) : std::min(turn.updates, 1);
  if (turn.updates != expected)
    throw Error(fmt::format("entry {} of shard {} made {} updates here and {} at the head",
                            entry.index, settings_.shard, turn.updates, expected));
  return std::move(turn.outputs);
}

void ShardState::take(Turn& turn, int index, const Request& request) {
  WorkerRecord& sender = workers_[index];
  const GradientName name{index, request.sequence};
  // It may have been expelled while the request had to wait.
  if (!sender.present) return turn.put(output::Discard{name});
  sender.executed = request.sequence;
  sender.forgiven = std::max(sender.forgiven, request.forgiven);
  if (request.flags & Request::kLeave) {
    diverged_ = true;
    turn.put(output::Discard{name});
    return remove(turn, index);
  }
  if (!take_report(turn, index, request)) {
    turn.put(output::Discard{name});
    return expel(turn, index, "an evaluation that nobody asked for");
  }
  if (request.flags & Request::kPull) {
    if (sender.pull) {
      turn.put(output::Discard{name});
      return expel(turn, index, "a second pull before the first was answered");
    }
    sender.pull = request;
    sender.waited = false;
    if (request.flags & Request::kRows) turn.put(output::TakeKeys{name});
  }
  if (request.flags & Request::kFinal) sender.finished = true;
  if (request.flags & Request::kGoodbye) sender.done = true;
  if (!(request.flags & Request::kPush)) return;
  ++sender.clock;
  versions_.take_push(turn, index, request);
  close_step(turn);
}

// What the coordinator learns from a request. False: it makes no sense.
bool ShardState::take_report(Turn& turn, int index, const Request& request) {
  if (!coordinator_) return true;
  consistency_->observe(index, request.occupancy, workers_.active().size());
  try {
    return !(request.flags & Request::kEvaluated) ||
           coordinator_->evaluated(turn, index, request.share);
  } catch (const DivergedError& error) {  // everybody is to hear of it
    turn.put(output::Warn{error.what()});
    diverged_ = true;
    return true;
  }
}

void ShardState::lose(Turn& turn, int index) {
  if (!workers_[index].present) return;
  turn.put(output::Warn{fmt::format("rank {} is lost; going on without it", index)});
  turn.count("workers_lost");
  remove(turn, index);
}

void ShardState::join(Turn& turn, int index, uint32_t incarnation) {
  const int64_t base = workers_.oldest();
  WorkerRecord& joining = workers_[index];
  joining = WorkerRecord{};
  joining.incarnation = incarnation;
  joining.base = base == kMostBound ? 0 : base;
  turn.put(output::Welcome{index});
  turn.count("workers_joined");
  close_step(turn);
}

void ShardState::expel(Turn& turn, int index, const std::string& why) {
  WorkerRecord& gone = workers_[index];
  if (!gone.present) return;
  turn.put(output::Warn{
      fmt::format("rank {} sent nonsense ({}); going on without it", index, why)});
  turn.count("workers_expelled");
  Reply reply;
  reply.kind = Reply::kRefused;
  if (!gone.pull) gone.pull.emplace();
  gone.pull->sequence = gone.executed;
  send(turn, index, reply, output::Send::kNothing);
  remove(turn, index);
}

void ShardState::remove(Turn& turn, int index) {
  WorkerRecord& gone = workers_[index];
  gone.present = false;
  gone.pull.reset();
  turn.changed = true;
  turn.put(output::Abandon{index});
  if (coordinator_) coordinator_->lose(index);
  close_step(turn);
}

void ShardState::close_step(Turn& turn) {
  for (const Hand& hand : versions_.close_step(turn)) ask_to_repeat(turn, hand);
}

void ShardState::ask_to_repeat(Turn& turn, const Hand& hand) {
  const int64_t version = versions_.version();
  for (int i = 0; i < workers_.size(); ++i) {
    const int index = (hand.part + i) % workers_.size();
    const WorkerRecord& candidate = workers_[index];
    if (!candidate.present || !candidate.pull || candidate.pull->wanted != version + 1) continue;
    if (candidate.pull->version != version) continue;  // it came back and never read this version
    Reply reply;
    reply.kind = Reply::kRepeat;
    reply.hand = hand;
    reply.version = version;
    reply.accounted = candidate.clock;
    turn.count("gradients_repeated");
    turn.put(output::Secure{index});
    return send(turn, index, reply, output::Send::kNothing);
  }
}

void ShardState::answer_all(Turn& turn) {
  if (!std::exchange(turn.changed, false)) return;
  rules_.begin();
  for (int i = 0; i < workers_.size(); ++i)
    if (workers_[i].present && workers_[i].pull) answer(turn, i);
}

void ShardState::answer(Turn& turn, int index) {
  if (diverged_) {
    Reply reply;
    reply.kind = Reply::kDiverged;
    send(turn, index, reply, output::Send::kNothing);
    workers_[index].done = true;
    return;
  }
  const std::optional<Reply> reply = rules_.reply_to(turn, index);
  if (!reply) return;
  const uint32_t flags = workers_[index].pull->flags;
  send(turn, index, *reply,
       flags & Request::kHeaderOnly ? output::Send::kNothing
       : flags & Request::kSnapshot ? output::Send::kKept
                                    : output::Send::kCurrent);
}

uint64_t ShardState::elements_of(const Request& pull) const {
  return settings_.sparse() ? static_cast<uint64_t>(pull.keys) * settings_.row_width
                            : settings_.elements;
}

void ShardState::send(Turn& turn, int index, Reply reply, output::Send::Source source) {
  WorkerRecord& to = workers_[index];
  reply.sequence = to.pull->sequence;
  reply.elements = source == output::Send::kNothing ? 0 : elements_of(*to.pull);
  turn.put(output::Send{index, to.pull->flags, reply, source});
  to.pull.reset();
  to.reply = reply;
}

std::optional<output::Send> ShardState::answer_again(int worker, const Request& request) const {
  const WorkerRecord& asking = workers_[worker];
  if (asking.pull || asking.reply.sequence != request.sequence) return std::nullopt;
  output::Send send{worker, request.flags, asking.reply, output::Send::kNothing};
  if (send.reply.elements == 0) return send;
  const bool snapshot = request.flags & Request::kSnapshot;
  send.source = snapshot ? output::Send::kKept : output::Send::kCurrent;
  // Where steps are collected, its part may have been computed by another worker by now: a gradient
  // of the version that the part was given out for is late then, and not a part of the next step.
  if (!consistency_->collects() || send.reply.kind != Reply::kCompute)
    send.reply.version = versions_.version();
  send.reply.accounted = asking.clock;
  if (!snapshot) send.reply.oldest = workers_.oldest() - asking.lead();
  send.reply.elements = elements_of(request);
  return send;
}

bool ShardState::resume(int64_t version, int64_t samples, std::span<const int64_t> coordinator) {
  if (coordinator_ ? !coordinator_->restore(version, coordinator) : !coordinator.empty())
    return false;
  versions_.resume(version, samples);
  return true;
}

void ShardState::archive(Archive& archive) {
  workers_.archive(archive);
  consistency_->archive(archive);
  if (coordinator_) coordinator_->archive(archive);
  versions_.archive(archive);
  archive(diverged_, closed_);
}

}  // namespace tutti::parameter_server

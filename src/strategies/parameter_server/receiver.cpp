#include "strategies/parameter_server/receiver.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sparse/keys.h"
#include "strategies/parameter_server/layout.h"
#include "strategies/parameter_server/shared_memory.h"

namespace tutti::parameter_server {
namespace {

// More requests than a worker can have under way: a pull ahead, a push, a goodbye.
constexpr size_t kMostQueued = 8;
constexpr size_t kMostDeferred = 256;  // of another server, which has no reason for nonsense

}  // namespace

Receiver::Receiver(Context& context, Recorder& local, const Ring& ring, Inbox& inbox,
                   const Parts& parts)
    : context_(context),
      local_(local),
      node_(context.node),
      ring_(ring),
      inbox_(inbox),
      state_(parts.state),
      shard_(parts.shard),
      held_(parts.held),
      replier_(parts.replier),
      replication_(parts.replication),
      index_(parts.state.settings().shard),
      pieces_(pieces_of(context.model.architecture(), parts.shard.range())),
      workers_(static_cast<size_t>(parts.state.workers().size())) {}

void Receiver::handle(Rank from, const Request& request, size_t bytes,
                      std::vector<Decided> decided) {
  if (!replication_.takes_inputs()) return defer(from, request, bytes, std::move(decided));
  const RequestLimits limits{state_.workers().size(),
                             ring_.first_server(),
                             ring_.replicas() > 0 ? ring_.servers() - 1 : 0,
                             ring_.shards(),
                             state_.versions().version(),
                             context_.model.architecture().rows()};
  std::string fault = fault_of(request, bytes, from, limits);
  if (fault.empty()) fault = fault_of(decided, limits.workers);
  if (!is_worker(from)) {
    if (fault.empty())
      return replication_.input({.kind = Entry::kBulletin, .request = request}, decided);
    return context_.log.warn(fmt::format("ignored a message of rank {}: {}", from, fault));
  }
  if (!state_.workers()[from].present) return;
  if (!fault.empty()) return refuse(from, fault);
  // It has not heard that this server took over: it will ask again, as others do.
  if (request.epoch < replication_.led_since()) return replication_.tell(from);
  From& sender = this->from(from);
  if (!follows(from, request.sequence))
    return refuse(from, fmt::format("request {} after {}", request.sequence, sender.sequence));
  sender.sequence = request.sequence;
  if (sender.queue.size() >= kMostQueued) return refuse(from, "more requests than make sense");
  sender.queue.push_back(request);
  process_queue(from);
}

void Receiver::defer(Rank from, const Request& request, size_t bytes,
                     std::vector<Decided> decided) {
  // Who does not know that this server has handed over or taken over asks again when it does.
  const uint32_t since = replication_.led_since();
  std::erase_if(deferred_, [&](const Deferred& other) {
    return is_worker(other.from) && other.request.epoch < since;
  });
  const auto waiting = std::count_if(deferred_.begin(), deferred_.end(),
                                     [&](const Deferred& other) { return other.from == from; });
  if (static_cast<size_t>(waiting) < (is_worker(from) ? kMostQueued : kMostDeferred))
    deferred_.push_back({from, request, bytes, std::move(decided)});
}

// One after the other; but to a server that took over, a worker says again what the head before
// had not answered.
bool Receiver::follows(int worker, uint64_t sequence) {
  if (std::exchange(from(worker).unheard, false))
    return sequence >= 1 && sequence <= state_.workers()[worker].executed + 1;
  return sequence == from(worker).sequence + 1;
}

void Receiver::process_queue(int worker) {
  From& sender = from(worker);
  while (state_.workers()[worker].present && !sender.push && !sender.queue.empty()) {
    const Request request = sender.queue.front();
    sender.queue.pop_front();
    if (request.flags & Request::kPush)
      begin_push(worker, request);
    else if (request.flags & Request::kRows)
      receive_rows(worker, request);
    else if (request.flags & Request::kSecure)
      tell_secured(worker, request);
    else if (state_.has_executed(worker, request.sequence))
      answer_again(worker, request);
    else
      replication_.input({.kind = Entry::kRequest, .worker = worker, .request = request});
  }
}

void Receiver::begin_push(int worker, const Request& request) {
  const WorkerRecord& sender = state_.workers()[worker];
  const bool again = state_.has_executed(worker, request.sequence);
  if (!again && request.clock < sender.clock) local_.count("pushes_duplicated");
  const bool repeats = sender.reply.kind == Reply::kRepeat && request.flags & Request::kFinal;
  if (!again && (request.clock != sender.clock || (sender.finished && !repeats)))
    return refuse(worker, fmt::format("push {} after {}", request.clock, sender.clock));
  if (shard_.rows()) return receive_rows(worker, request);
  if (request.flags & Request::kOutbox) return take_outbox(worker, request);
  receive_pieces(worker, request);
}

void Receiver::receive_pieces(int worker, const Request& request) {
  const size_t slot = shard_.take_slot(), element = shard_.element_bytes();
  const std::vector<Range> whole{shard_.range()};
  const std::vector<Range>& pieces = request.flags & Request::kInParts ? pieces_ : whole;
  Push& push = from(worker).push.emplace(Push{request, slot, 0});
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].empty()) continue;
    const size_t begin = pieces[i].begin - shard_.range().begin;
    expect(worker, gradient_tag(ring_.stream(index_, request.sequence), i),
           shard_.slot(slot).subspan(begin * element, pieces[i].size() * element));
  }
  if (push.pieces_left == 0) finish_push(worker);
}

void Receiver::expect(int worker, Tag tag, std::span<std::byte> buffer) {
  inbox_.expect(
      worker, tag, buffer,
      {.kind = Arrival::kGradient, .shard = index_, .peer = worker, .bytes = buffer.size()});
  ++from(worker).push->pieces_left;
}

// The keys of a push or a pull, and the gradients of a push.
void Receiver::receive_rows(int worker, const Request& request) {
  RowShard& rows = *shard_.rows();
  const size_t slot = shard_.take_slot(), count = static_cast<size_t>(request.keys);
  from(worker).push = Push{request, slot, 0};
  const std::span<uint64_t> keys = rows.keys(slot, count);
  if (count == 0) return finish_push(worker);
  const uint64_t stream = ring_.stream(index_, request.sequence);
  expect(worker, keys_tag(stream), writable_bytes_of(keys));
  if (request.flags & Request::kPush)
    expect(worker, gradient_tag(stream, 0), rows.gradients(slot, count));
}

// The gradient lies where its worker computes: nothing has to arrive.
void Receiver::take_outbox(int worker, const Request& request) {
  const size_t parameters = context_.model.architecture().parameter_count;
  std::span<float> gradient;
  if (context_.window && !context_.task.deterministic)
    gradient = floats_in(*context_.window, worker, request.offset, parameters);
  if (gradient.size() != parameters) return refuse(worker, "a gradient that lies nowhere");
  const Range range = shard_.range();
  from(worker).push =
      Push{request, shard_.lend_slot(gradient.subspan(range.begin, range.size())), 0};
  finish_push(worker);
}

void Receiver::gradient_arrived(const Arrival& arrival, const Completion& completion) {
  From& sender = from(arrival.peer);
  if (!state_.workers()[arrival.peer].present || !sender.push) return;
  if (completion.state == State::kPeerLost) return;  // the membership says so too
  if (completion.state != State::kDone || completion.bytes != arrival.bytes)
    return refuse(arrival.peer, fmt::format("a gradient of {} bytes instead of {}",
                                            completion.bytes, arrival.bytes));
  if (--sender.push->pieces_left > 0) return;
  finish_push(arrival.peer);
  process_queue(arrival.peer);
}

bool Receiver::rows_make_sense(int worker) {
  const std::span<const uint64_t> keys = shard_.rows()->keys(from(worker).push->slot);
  std::string fault = fault_of_keys(keys, context_.model.architecture().rows());
  for (size_t i = 0; i < keys.size() && fault.empty(); ++i)
    if (server_of(keys[i], static_cast<size_t>(ring_.shards())) != static_cast<size_t>(index_))
      fault = fmt::format("key {}, which another server holds", keys[i]);
  if (!fault.empty()) refuse(worker, fault);
  return fault.empty();
}

void Receiver::finish_push(int worker) {
  if (shard_.rows() && !rows_make_sense(worker)) return;
  const Push push = *from(worker).push;
  const uint64_t sequence = push.request.sequence;
  if (!state_.has_executed(worker, sequence))
    return replication_.input({.kind = Entry::kRequest, .worker = worker, .request = push.request});
  // The head before had it too; if it was not yet applied, that one alone.
  from(worker).push.reset();
  if (push.request.flags & Request::kRows) {
    replier_.take_keys(worker, shard_.rows()->keys(push.slot));
    shard_.free_slot(push.slot);
    return answer_again(worker, push.request);
  }
  local_.count("pushes_resent");
  answer_again(worker, push.request);
  const GradientName name{worker, sequence};
  if (!held_.lacks(name)) return shard_.free_slot(push.slot);
  held_.hold(name, push.slot);
  replication_.input({.kind = Entry::kDelivered, .worker = worker});
}

void Receiver::tell_secured(int worker, const Request& request) {
  held_.secure(worker);
  from(worker).secured =
      node_.endpoint().send(worker, secured_tag(ring_.stream(index_, request.sequence)), {});
}

void Receiver::answer_again(int worker, const Request& request) {
  if (!(request.flags & Request::kPull)) return;
  const std::optional<Request>& pull = state_.workers()[worker].pull;
  if (pull) {
    if (pull->sequence == request.sequence) replier_.hear(worker, true);
    return;
  }
  const std::optional<output::Send> send = state_.answer_again(worker, request);
  if (!send) return;
  replier_.hear(worker, true);
  replier_.send(*send, replication_.chain().last());
  replication_.release();
}

void Receiver::refuse(int worker, const std::string& why) {
  if (!replication_.leads() || !state_.workers()[worker].present) return;
  context_.log.warn(fmt::format("rank {} sent nonsense: {}", worker, why));
  replication_.input({.kind = Entry::kExpelled, .worker = worker});
}

void Receiver::look_at_workers() {
  if (!replication_.takes_inputs()) return;
  Membership& members = node_.membership();
  for (int worker = 0; worker < state_.workers().size(); ++worker) {
    const WorkerRecord& known = state_.workers()[worker];
    const uint32_t incarnation = members.incarnation(worker);
    const bool alive = members.alive(worker);
    if (known.present && (!alive || incarnation != known.incarnation))
      replication_.input({.kind = Entry::kLost, .worker = worker});
    if (!alive || incarnation == known.incarnation) continue;
    replication_.input({.kind = Entry::kJoined, .worker = worker, .incarnation = incarnation});
    if (replication_.chain().order().epoch > 0) replication_.tell(worker);
  }
  forget_undelivered();
}

// Gradients that the head before had received from workers that are gone.
void Receiver::forget_undelivered() {
  std::vector<GradientName> forgotten;
  for (const GradientName& name : held_.absent())
    if (!state_.workers()[name.worker].present) forgotten.push_back(name);
  for (const GradientName& name : forgotten) {
    Request push;
    push.sequence = name.sequence;
    replication_.input({.kind = Entry::kForgotten, .worker = name.worker, .request = push});
  }
}

std::optional<size_t> Receiver::take_slot(int worker, uint64_t sequence) {
  std::optional<Push>& push = from(worker).push;
  if (!push || push->request.sequence != sequence) return std::nullopt;
  const size_t slot = push->slot;
  push.reset();
  return slot;
}

void Receiver::abandon(int worker) {
  inbox_.forget([&](const Arrival& arrival) {
    return arrival.kind == Arrival::kGradient && arrival.shard == index_ && arrival.peer == worker;
  });
  From& sender = from(worker);
  if (sender.push) shard_.free_slot(sender.push->slot);
  sender.push.reset();
  sender.queue.clear();
}

void Receiver::take_over() {
  for (From& sender : workers_) sender.unheard = true;
}

// What workers have begun to say here they say to the next head again.
void Receiver::hand_over() {
  for (int worker = 0; worker < state_.workers().size(); ++worker) abandon(worker);
}

void Receiver::catch_up() {
  look_at_workers();
  for (int worker = 0; worker < state_.workers().size(); ++worker) process_queue(worker);
  for (Deferred& early : std::exchange(deferred_, {}))
    handle(early.from, early.request, early.bytes, std::move(early.decided));
}

bool Receiver::has_heard_everybody() const {
  for (int worker = 0; worker < state_.workers().size(); ++worker)
    if (state_.workers()[worker].present && workers_[static_cast<size_t>(worker)].unheard)
      return false;
  return true;
}

}  // namespace tutti::parameter_server

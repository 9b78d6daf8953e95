// Requests and inputs; updates are in server_updates.cpp, replies in server_replies.cpp, what
// happens when the head before is lost in server_takeover.cpp.
#include "strategies/parameter_server/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "strategies/parameter_server/layout.h"
#include "strategies/parameter_server/shared_memory.h"

namespace tutti::parameter_server {
namespace {

// More requests than a worker can have under way: a pull ahead, a push, a goodbye.
constexpr size_t kMostQueued = 8;
constexpr size_t kMostDeferred = 256;  // of another server, which has no reason for nonsense

Range range_of(const Context& context, int shard) {
  if (context.model.architecture().row_width > 0) return {0, 0};  // its rows go by their keys
  const auto& shards = detail_of<ServerDetail>(context.plan).shards;
  return shards[static_cast<size_t>(shard)];
}

}  // namespace

Server::Server(Context& context, Recorder& local, const Config& config, const Ring& ring, int shard,
               Order order, Inbox& inbox, Publish publish, Tell tell)
    : context_(context),
      local_(local),
      node_(context.node),
      config_(config),
      ring_(ring),
      index_(shard),
      inbox_(inbox),
      publish_(std::move(publish)),
      tell_(std::move(tell)),
      consistency_(make_consistency(config, context.cluster.workers)),
      timetable_(context.task, context.optimizer, context.data.splits.train.size()),
      shard_(context, range_of(context, shard)),
      chain_(context.node, ring, shard, std::move(order), inbox,
             [this](Chain::Item& item) { save(item); }),
      pieces_(pieces_of(context.model.architecture(), shard_.range())),
      forward_pieces_(forward_pieces_of(context.model.architecture(), shard_.range())),
      workers_(static_cast<size_t>(context.cluster.workers)) {
  if (shard == 0)
    coordinator_ = std::make_unique<Coordinator>(context, config, *consistency_, timetable_);
  led_ = leads();
  if (!config.resume.empty() && !is_joining()) resume();
}

bool Server::over() const {
  bool somebody = false;
  for (const Worker& worker : workers_) {
    if (worker.present && !worker.done) return false;
    somebody = somebody || worker.done;
  }
  if (!somebody && !diverged_)
    throw FabricError(FabricError::Kind::kPeerLost, 0,
                      "every worker is lost or was refused: nobody is left to train");
  return true;
}

void Server::handle(Rank from, const Request& request, size_t bytes, std::vector<Decided> decided) {
  if (!leads() || chain_.is_changing()) return defer(from, request, bytes, std::move(decided));
  const RequestLimits limits{static_cast<int>(workers_.size()),
                             ring_.first_server(),
                             ring_.replicas() > 0 ? ring_.servers() - 1 : 0,
                             ring_.shards(),
                             version_,
                             context_.model.architecture().rows()};
  std::string fault = fault_of(request, bytes, from, limits);
  if (fault.empty()) fault = fault_of(decided, limits.workers);
  const bool from_worker = from >= 0 && from < limits.workers;
  if (!from_worker) {
    if (fault.empty()) return input({.kind = Entry::kBulletin, .request = request}, decided);
    return context_.log.warn(fmt::format("ignored a message of rank {}: {}", from, fault));
  }
  Worker& sender = worker(from);
  if (!sender.present) return;
  if (!fault.empty()) return refuse(from, fault);
  // It has not heard that this server took over: it will ask again, as others do.
  if (request.epoch < led_since_) return tell_(notice(), from);
  if (!follows(sender, request.sequence))
    return refuse(from, fmt::format("request {} after {}", request.sequence, sender.sequence));
  sender.sequence = request.sequence;
  if (sender.queue.size() >= kMostQueued) return refuse(from, "more requests than make sense");
  sender.queue.push_back(request);
  process_queue(from);
}

void Server::defer(Rank from, const Request& request, size_t bytes, std::vector<Decided> decided) {
  const auto is_worker = [&](Rank rank) {
    return rank >= 0 && rank < static_cast<Rank>(workers_.size());
  };
  // Who does not know that this server has handed over or taken over asks again when it does.
  const uint32_t since = leads() ? led_since_ : chain_.order().epoch;
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
bool Server::follows(Worker& sender, uint64_t sequence) const {
  if (std::exchange(sender.unheard, false)) return sequence >= 1 && sequence <= sender.executed + 1;
  return sequence == sender.sequence + 1;
}

// In the order sent; what comes after a push waits until its gradients are there.
void Server::process_queue(int index) {
  Worker& sender = worker(index);
  while (sender.present && !sender.push && !sender.queue.empty()) {
    const Request request = sender.queue.front();
    sender.queue.pop_front();
    if (request.flags & Request::kPush)
      begin_push(index, request);
    else if (request.flags & Request::kRows)
      receive_rows(index, request);
    else if (request.flags & Request::kSecure)
      tell_secured(index, request);
    else if (request.sequence <= sender.executed)
      answer_again(index, request);
    else
      input({.kind = Entry::kRequest, .worker = index, .request = request});
  }
}

void Server::begin_push(int index, const Request& request) {
  Worker& sender = worker(index);
  const bool again = request.sequence <= sender.executed;
  if (!again && request.clock < sender.clock) local_.count("pushes_duplicated");
  const bool repeats = sender.reply.kind == Reply::kRepeat && request.flags & Request::kFinal;
  if (!again && (request.clock != sender.clock || (sender.finished && !repeats)))
    return refuse(index, fmt::format("push {} after {}", request.clock, sender.clock));
  if (shard_.rows()) return receive_rows(index, request);
  if (request.flags & Request::kOutbox) return take_outbox(index, request);
  const size_t slot = shard_.take_slot();
  const size_t element = shard_.element_bytes();
  const std::vector<Range> whole{shard_.range()};
  const std::vector<Range>& pieces = request.flags & Request::kInParts ? pieces_ : whole;
  sender.push = Push{request, slot, 0};
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].empty()) continue;
    const size_t bytes = pieces[i].size() * element;
    inbox_.expect(
        index, gradient_tag(ring_.stream(index_, request.sequence), i),
        shard_.slot(slot).subspan((pieces[i].begin - shard_.range().begin) * element, bytes),
        {.kind = Arrival::kGradient, .shard = index_, .peer = index, .bytes = bytes});
    ++sender.push->pieces_left;
  }
  if (sender.push->pieces_left == 0) finish_push(index);
}

// The gradient lies where its worker computes: nothing has to arrive.
void Server::take_outbox(int index, const Request& request) {
  const size_t parameters = context_.model.parameters().size();
  std::span<float> gradient;
  if (context_.window && !context_.task.deterministic)
    gradient = floats_in(*context_.window, index, request.offset, parameters);
  if (gradient.size() != parameters) return refuse(index, "a gradient that lies nowhere");
  const Range range = shard_.range();
  worker(index).push =
      Push{request, shard_.lend_slot(gradient.subspan(range.begin, range.size())), 0};
  finish_push(index);
}

// Takes what this worker has in its window, since that is about to change.
void Server::secure(int index) {
  for (Gathered& gathered : gathered_)
    if (gathered.worker == index && gathered.slot != kNoSlot)
      gathered.slot = shard_.own_slot(gathered.slot);
}

void Server::tell_secured(int index, const Request& request) {
  secure(index);
  worker(index).secured =
      node_.endpoint().send(index, secured_tag(ring_.stream(index_, request.sequence)), {});
}

void Server::gradient_arrived(const Arrival& arrival, const Completion& completion) {
  Worker& sender = worker(arrival.peer);
  if (!sender.present || !sender.push) return;
  if (completion.state == State::kPeerLost) return;  // the membership says so too
  if (completion.state != State::kDone || completion.bytes != arrival.bytes)
    return refuse(arrival.peer, fmt::format("a gradient of {} bytes instead of {}",
                                            completion.bytes, arrival.bytes));
  if (--sender.push->pieces_left > 0) return;
  finish_push(arrival.peer);
  process_queue(arrival.peer);
}

void Server::refuse(int index, const std::string& why) {
  if (!leads() || !worker(index).present) return;
  context_.log.warn(fmt::format("rank {} sent nonsense: {}", index, why));
  input({.kind = Entry::kExpelled, .worker = index});
}

void Server::input(Entry entry, std::vector<Decided> decided) {
  TUTTI_CHECK(!current_);
  if (chain_.is_changing()) return void(waiting_.push_back({entry, std::move(decided)}));
  auto item = std::make_unique<Chain::Item>();
  entry.shard = index_;
  entry.index = chain_.number_next();
  item->entry = entry;
  item->decided = std::move(decided);
  execute(*item);
  chain_.pass_on(std::move(item));
  entry.has_order() ? look_at_chain() : release();
}

void Server::follow() {
  while (std::unique_ptr<Chain::Item> item = chain_.next()) {
    if (item->entry.kind == Entry::kState) {
      restore(*item);
      continue;
    }
    replaying_ = true;
    execute(*item);
    replaying_ = false;
    chain_.pass_on(std::move(item));
  }
  look_at_chain();
}

void Server::execute(Chain::Item& item) {
  const Entry& entry = item.entry;
  current_ = &item;
  updates_ = 0;
  changed_ = true;
  if (entry.kind == Entry::kRequest)
    take(entry.worker, entry.request);
  else if (entry.kind == Entry::kLost)
    lose(entry.worker);
  else if (entry.kind == Entry::kJoined)
    join(entry.worker, entry.incarnation);
  else if (entry.kind == Entry::kExpelled)
    expel(entry.worker, "see above");
  else if (entry.kind == Entry::kDelivered)
    try_to_close();
  else if (entry.kind == Entry::kBulletin)
    obey(entry.request, item.decided);
  else if (entry.kind == Entry::kClosed)
    end();
  else if (entry.kind == Entry::kForgotten) {
    std::erase_if(gathered_, [&](const Gathered& gathered) {
      return gathered.worker == entry.worker && gathered.push.sequence == entry.request.sequence;
    });
    try_to_close();
  }
  answer_all();
  if (entry.kind == Entry::kRequest && !(entry.request.flags & Request::kPush)) {
    try_to_close();  // now that this worker waits too, all may wait for a lost one
    answer_all();
  }
  if (updates_ != static_cast<int>(entry.updated))
    throw Error(fmt::format("entry {} of shard {} made {} updates here and {} at the head",
                            entry.index, index_, updates_, entry.updated));
  current_ = nullptr;
}

void Server::take(int index, const Request& request) {
  Worker& sender = worker(index);
  const size_t slot = sender.push ? sender.push->slot : kNoSlot;
  sender.push.reset();
  sender.executed = request.sequence;
  sender.forgiven = std::max(sender.forgiven, request.forgiven);
  if (request.flags & Request::kLeave) {
    diverged_ = true;
    free(slot);
    return remove(index);
  }
  if (coordinates()) {
    consistency_->observe(index, request.occupancy, present(true).size());
    try {
      if (request.flags & Request::kEvaluated && !coordinator_->evaluated(index, request.share)) {
        free(slot);
        return expel(index, "an evaluation that nobody asked for");
      }
    } catch (const DivergedError& error) {  // everybody is to hear of it
      context_.log.warn(error.what());
      diverged_ = true;
    }
  }
  if (request.flags & Request::kPull) {
    if (sender.pull) {
      free(slot);
      return expel(index, "a second pull before the first was answered");
    }
    sender.pull = request;
    sender.waited = false;
    sender.heard = !replaying_;
    if (request.flags & Request::kRows && slot != kNoSlot) take_keys(index, slot);
  }
  if (request.flags & Request::kFinal) sender.finished = true;
  if (request.flags & Request::kGoodbye) sender.done = true;
  if (request.flags & Request::kPush) take_push(index, request, slot);
}

void Server::obey(const Request& bulletin, const std::vector<Decided>& decided) {
  if (bulletin.flags & Request::kKeep) {
    if (bulletin.share.id <= to_keep_) return;  // it was told before
    to_keep_ = bulletin.share.id;
    keep_at_ = consistency_->collects() ? bulletin.version : 0;
    return updated();
  }
  if (bulletin.version < version_) return;
  decisions_[bulletin.version] = decided;
  try_to_close();
}

}  // namespace tutti::parameter_server

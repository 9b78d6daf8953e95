// Who is a member, and what a replica does when it becomes the head.
//
// It is in the state of the head before, up to the last entry that reached it; what came after that
// nobody has seen the effect of. It lacks two things that only the head had: gradients that were
// gathered for a step that is open, and connections. Workers notice the loss by themselves and say
// again what was not answered; what the chain has of that is answered from the state, and not
// executed a second time.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strategies/parameter_server/server.h"

namespace tutti::parameter_server {

void Server::look_at_servers() {
  chain_.look_at_members();
  look_at_chain();
  publish_again();  // the head that a bulletin was sent to may have been lost with it
}

void Server::publish_again() {
  for (Bulletin& bulletin : bulletins_) bulletin.sent = false;
  release();
}

void Server::take_over() {
  context_.log.warn(fmt::format("takes over shard {} at version {}", index_, version_));
  for (Worker& worker : workers_) worker.unheard = true;
}

// Gradients that the head before had received from workers that are gone.
void Server::forget_undelivered() {
  std::vector<Gathered> forgotten;
  for (const Gathered& gathered : gathered_)
    if (gathered.slot == kNoSlot && !worker(gathered.worker).present) forgotten.push_back(gathered);
  for (const Gathered& gathered : forgotten)
    input({.kind = Entry::kForgotten, .worker = gathered.worker, .request = gathered.push});
}

void Server::look_at_workers() {
  if (!leads() || chain_.is_changing()) return;
  Membership& members = node_.membership();
  for (int index = 0; index < static_cast<int>(workers_.size()); ++index) {
    const uint32_t incarnation = members.incarnation(index);
    const bool alive = members.alive(index);
    if (worker(index).present && (!alive || incarnation != worker(index).incarnation))
      input({.kind = Entry::kLost, .worker = index});
    if (!alive || incarnation == worker(index).incarnation) continue;
    input({.kind = Entry::kJoined, .worker = index, .incarnation = incarnation});
    if (chain_.order().epoch > 0) tell_(notice(), index);
  }
  forget_undelivered();
}

void Server::lose(int index) {
  if (!worker(index).present) return;
  context_.log.warn(fmt::format("rank {} is lost; going on without it", index));
  context_.recorder.count("workers_lost");
  remove(index);
}

void Server::join(int index, uint32_t incarnation) {
  const int64_t base = oldest();
  Worker& joining = worker(index);
  joining = Worker{};
  joining.incarnation = incarnation;
  joining.base = base == kMostBound ? 0 : base;
  context_.recorder.count("workers_joined");
  try_to_close();
}

// A worker says again what the head before had executed. If that answered, the answer may not have
// arrived; the parameters that go with it are as new as can be.
void Server::answer_again(int index, const Request& request) {
  Worker& asking = worker(index);
  if (!(request.flags & Request::kPull)) return;
  if (asking.pull) {
    asking.heard = asking.heard || asking.pull->sequence == request.sequence;
    return;
  }
  if (asking.reply.sequence != request.sequence) return;
  Reply reply = asking.reply;
  std::span<const float> parameters;
  if (reply.elements > 0) {
    const bool snapshot = request.flags & Request::kSnapshot;
    parameters = snapshot ? shard_.kept() : shard_.values();
    reply.version = version_;
    reply.accounted = asking.clock;
    if (!snapshot) reply.oldest = oldest() - asking.lead();
  }
  asking.pull = request;
  asking.heard = true;
  if (reply.elements > 0 && shard_.rows())
    answer_rows(index, request, reply);
  else
    send_reply(index, reply, parameters);
  release();
}

void Server::entry_arrived(Rank from, const Entry& entry, std::vector<Decided> decided) {
  chain_.receive(from, entry, std::move(decided));
  follow();
}

void Server::update_arrived(const Arrival& arrival, const Completion& completion) {
  chain_.update_arrived(arrival, completion);
  follow();
}

// A worker that has not asked this server since it took over may not have been answered.
bool Server::settled() const {
  if (!over() || chain_.acknowledged() != chain_.last() || chain_.is_changing()) return false;
  return std::none_of(workers_.begin(), workers_.end(),
                      [](const Worker& worker) { return worker.present && worker.unheard; });
}

std::vector<int> Server::latecomers() const {
  std::vector<int> late;
  if (!leads()) return late;
  for (int index = 0; index < static_cast<int>(workers_.size()); ++index) {
    const Worker& worker = workers_[static_cast<size_t>(index)];
    if (node_.membership().alive(index) &&
        (!worker.present || !worker.done ||
         worker.incarnation != node_.membership().incarnation(index)))
      late.push_back(index);
  }
  return late;
}

void Server::close_chain() { input({.kind = Entry::kClosed}); }

void Server::end() {
  closed_ = true;
  if (const RowShard* rows = shard_.rows())
    context_.recorder.count("rows_made", static_cast<int64_t>(rows->table().size()));
}

void Server::finish_sending() {
  for (Worker& worker : workers_)
    for (Handle& handle : worker.sending)
      if (handle.pending()) node_.endpoint().wait(handle, node_.timeout_s());
  chain_.finish_sending();
}

}  // namespace tutti::parameter_server

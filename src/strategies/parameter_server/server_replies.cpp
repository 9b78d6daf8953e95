// Who gets which parameters when, and who is still a member.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "strategies/parameter_server/server.h"
#include "strategies/parameter_server/shared_memory.h"

namespace tutti::parameter_server {

std::vector<int> Server::present(bool active) const {
  std::vector<int> members;
  for (size_t i = 0; i < workers_.size(); ++i)
    if (workers_[i].present && !(active && workers_[i].finished))
      members.push_back(static_cast<int>(i));
  return members;
}

int64_t Server::oldest() const {
  int64_t least = kMostBound;
  for (const Worker& worker : workers_)
    if (worker.present && !worker.finished) least = std::min(least, worker.lead() + worker.clock);
  return least;
}

int64_t Server::fastest() const {
  int64_t most = 0;
  for (const Worker& worker : workers_)
    if (worker.present) most = std::max(most, worker.lead() + worker.clock);
  return most;
}

void Server::answer_all() {
  if (!std::exchange(changed_, false)) return;
  // Once for all who wait: with hundreds of workers this is what a server's time goes to.
  oldest_ = oldest();
  nobody_active_ = present(true).empty();
  for (size_t i = 0; i < workers_.size(); ++i)
    if (workers_[i].present && workers_[i].pull) answer(static_cast<int>(i));
}

void Server::answer(int index) {
  const Request pull = *worker(index).pull;
  Reply reply;
  if (diverged_) {
    reply.kind = Reply::kDiverged;
    send_reply(index, reply, {});
    worker(index).done = true;
    return;
  }
  if (!fill_reply(index, pull, reply)) return;
  if (pull.flags & Request::kHeaderOnly) return send_reply(index, reply, {});
  if (shard_.rows()) return answer_rows(index, pull, reply);
  send_reply(index, reply, pull.flags & Request::kSnapshot ? shard_.kept() : shard_.values());
}

// False: not yet.
bool Server::fill_reply(int index, const Request& pull, Reply& reply) {
  Worker& asking = worker(index);
  reply.version = version_;
  reply.accounted = asking.clock;
  reply.samples = coordinates() ? coordinator_->samples() : samples_;
  if (pull.flags & Request::kSnapshot) return kept_ >= pull.share.id;
  if (pull.flags & Request::kGoodbye) {
    reply.kind = Reply::kDone;
    return true;
  }
  const bool final = pull.flags & Request::kFinal;
  const bool directs = coordinates() && !(pull.flags & Request::kRows);
  if (final) {
    // Everybody's last gradients come before everybody's last pull.
    if (!nobody_active_ || !gathered_.empty()) return false;
    reply.kind = Reply::kDone;
    return !directs || coordinator_->direct(index, true, false, present(false), reply);
  }
  if (version_ < pull.wanted) return false;
  // An adaptive bound is the coordinator's; the others take it from what the worker was told.
  const bool follows = follows_reports(config_) && !coordinates();
  reply.bound = follows ? pull.bound : consistency_->bound(index);
  const int64_t clock = asking.lead() + pull.clock + (pull.flags & Request::kAhead ? 1 : 0) +
                        (pull.flags & Request::kPush ? 1 : 0);
  reply.oldest = oldest_ - asking.lead();
  if (!(pull.flags & Request::kHeaderOnly) &&
      !consistency_->may_read(clock, oldest_, reply.bound, asking.waited)) {
    asking.waited = true;
    return false;
  }
  if (!directs) return true;
  const bool newcomer = asking.incarnation > 0 && asking.clock == 0;
  if (!coordinator_->direct(index, false, newcomer, present(true), reply)) return false;
  forgive(asking, reply);
  return true;
}

// It says so in its next request to every shard, so that all of them compare the same clocks, and
// who is behind all others is behind all others everywhere.
void Server::forgive(Worker& asking, Reply& reply) {
  reply.forgiven = asking.forgiven;
  if (!consistency_->forgives(asking.clock - asking.forgiven_at)) return;
  const int64_t behind = fastest() - (asking.lead() + asking.clock);
  if (behind <= 0) return;
  reply.forgiven += behind;
  asking.forgiven_at = asking.clock;
}

// Leaves when the chain has all that it says (release).
void Server::send_reply(int index, const Reply& reply, std::span<const float> parameters) {
  Worker& to = worker(index);
  const uint64_t sequence = to.pull->sequence;
  const bool shares = context_.window && to.pull->flags & Request::kReads && !parameters.empty();
  to.by_layers = to.pull->flags & Request::kLayers;
  to.pull.reset();
  to.reply = reply;
  to.reply.sequence = sequence;
  to.reply.elements = parameters.size();
  if (!to.heard) return;
  to.sending.clear();  // it asked again, so it has the last reply
  if (shares) {
    to.reply.offset = share(index, parameters);
    parameters = {};
  }
  // In lockstep the parameters stay as they are until everybody has them.
  if (!parameters.empty() && !consistency_->lockstep() && !shard_.rows()) {
    if (to.staging.size() == 0) to.staging = Buffer<float>(parameters.size());
    if (!node_.clock().cost_only())
      std::copy(parameters.begin(), parameters.end(), to.staging.span().begin());
    node_.clock().charge(
        {.flops = 0, .memory_bytes = 8.0 * static_cast<double>(parameters.size())});
    parameters = to.staging.span();
  }
  to.parameters = parameters;
  outputs_.push_back({chain_.last(), index, sequence});
}

// Where a worker of this host finds them in the window, in bytes.
int64_t Server::share(int index, std::span<const float> parameters) {
  if (consistency_->lockstep()) return 0;
  const auto offset = static_cast<int64_t>(staging_offset(parameters.size(), index));
  const std::span<float> staging =
      floats_in(*context_.window, node_.endpoint().rank(), offset, parameters.size());
  if (!node_.clock().cost_only()) std::copy(parameters.begin(), parameters.end(), staging.begin());
  node_.clock().charge({.flops = 0, .memory_bytes = 8.0 * static_cast<double>(parameters.size())});
  return offset;
}

void Server::release() {
  while (!outputs_.empty() && outputs_.front().index <= chain_.acknowledged()) {
    transmit(outputs_.front());
    outputs_.pop_front();
  }
  if (!leads()) return;
  for (Bulletin& bulletin : bulletins_) {
    if (bulletin.sent || bulletin.index > chain_.acknowledged()) continue;
    bulletin.sent = true;
    publish_(bulletin.request, bulletin.decided);
  }
}

void Server::transmit(const Output& output) {
  Worker& to = worker(output.worker);
  if (to.reply.sequence != output.sequence) return;
  const uint64_t stream = ring_.stream(index_, output.sequence);
  to.sending.push_back(node_.endpoint().send(output.worker, reply_tag(stream),
                                             std::as_bytes(std::span<const Reply>(&to.reply, 1))));
  if (to.parameters.empty()) return;
  to.pieces_sent = 0;
  if (to.by_layers && forward_pieces_.size() > 1) return send_next_piece(output.worker);
  to.sending.push_back(
      node_.endpoint().send(output.worker, parameters_tag(stream), bytes_of(to.parameters)));
}

// One at a time: what the first layers need would share the network with the rest otherwise.
void Server::send_next_piece(int index) {
  Worker& to = worker(index);
  const size_t number = to.pieces_sent++;
  const Range piece = forward_pieces_[number];
  Handle sending = node_.endpoint().send(
      index, parameters_tag(ring_.stream(index_, to.reply.sequence), number),
      bytes_of(to.parameters.subspan(piece.begin - shard_.range().begin, piece.size())));
  if (to.pieces_sent == forward_pieces_.size())
    to.sending.push_back(std::move(sending));
  else
    inbox_.watch(
        std::move(sending),
        {.kind = Arrival::kSent, .shard = index_, .peer = index, .index = to.reply.sequence});
}

void Server::piece_sent(const Arrival& arrival, const Completion& completion) {
  const Worker& to = worker(arrival.peer);
  const bool goes_on = to.present && completion.state == State::kDone &&
                       to.reply.sequence == arrival.index &&
                       to.pieces_sent < forward_pieces_.size();
  if (goes_on) send_next_piece(arrival.peer);
}

void Server::abandon_push(Worker& worker, int index) {
  inbox_.forget([&](const Arrival& arrival) {
    return arrival.kind == Arrival::kGradient && arrival.shard == index_ && arrival.peer == index;
  });
  if (worker.push) shard_.free_slot(worker.push->slot);
  worker.push.reset();
}

void Server::remove(int index) {
  changed_ = true;
  Worker& gone = worker(index);
  gone.present = false;
  abandon_push(gone, index);
  gone.queue.clear();
  gone.pull.reset();
  if (coordinates()) coordinator_->lose(index);
  try_to_close();
}

void Server::expel(int index, const std::string& why) {
  Worker& gone = worker(index);
  if (!gone.present) return;
  context_.log.warn(fmt::format("rank {} sent nonsense ({}); going on without it", index, why));
  context_.recorder.count("workers_expelled");
  Reply reply;
  reply.kind = Reply::kRefused;
  if (!gone.pull) gone.pull.emplace();
  gone.pull->sequence = std::max(gone.sequence, gone.executed);
  gone.heard = !replaying_;
  send_reply(index, reply, {});
  remove(index);
}

}  // namespace tutti::parameter_server

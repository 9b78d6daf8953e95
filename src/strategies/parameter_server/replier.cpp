#include "strategies/parameter_server/replier.h"

#include <algorithm>
#include <utility>

#include "strategies/parameter_server/layout.h"
#include "strategies/parameter_server/shared_memory.h"

namespace tutti::parameter_server {

Replier::Replier(Context& context, const Ring& ring, int shard, Inbox& inbox, Shard& parameters,
                 bool in_place)
    : context_(context),
      node_(context.node),
      ring_(ring),
      index_(shard),
      inbox_(inbox),
      shard_(parameters),
      in_place_(in_place),
      pieces_(forward_pieces_of(context.model.architecture(), parameters.range())),
      workers_(static_cast<size_t>(context.cluster.workers)) {}

void Replier::take_keys(int worker, std::span<const uint64_t> keys) {
  to(worker).keys.assign(keys.begin(), keys.end());
}

void Replier::send(const output::Send& send, uint64_t index) {
  To& to = this->to(send.worker);
  if (!to.heard) return;
  to.sending.clear();  // it asked again, so it has the last reply
  to.reply = send.reply;
  to.by_layers = send.flags & Request::kLayers;
  std::span<const float> parameters;
  if (send.source != output::Send::kNothing) {
    if (shard_.rows())
      parameters = read_rows(to, send);
    else
      parameters = send.source == output::Send::kKept ? shard_.kept() : shard_.values();
  }
  if (context_.window && send.flags & Request::kReads && !parameters.empty()) {
    to.reply.offset = share(send.worker, parameters);
    parameters = {};
  }
  if (!parameters.empty() && !in_place_ && !shard_.rows()) parameters = stage(to, parameters);
  to.parameters = parameters;
  waiting_.push_back({index, send.worker, send.reply.sequence});
}

std::span<const float> Replier::read_rows(To& to, const output::Send& send) {
  const size_t count = send.reply.elements;
  if (to.staging.size() < count) to.staging = Buffer<float>(count);
  const std::span<float> rows = to.staging.span().first(count);
  shard_.rows()->read(to.keys, send.source == output::Send::kKept, rows);
  return rows;
}

std::span<const float> Replier::stage(To& to, std::span<const float> parameters) {
  if (to.staging.size() == 0) to.staging = Buffer<float>(parameters.size());
  copy(parameters, to.staging.span());
  return to.staging.span();
}

// Where a worker of this host finds them in the window, in bytes.
int64_t Replier::share(int worker, std::span<const float> parameters) {
  if (in_place_) return 0;
  const auto offset = static_cast<int64_t>(staging_offset(parameters.size(), worker));
  copy(parameters, floats_in(*context_.window, node_.endpoint().rank(), offset, parameters.size()));
  return offset;
}

void Replier::copy(std::span<const float> from, std::span<float> to) {
  node_.clock().arithmetic().copy(from, to);
  node_.clock().charge({.flops = 0, .memory_bytes = 8.0 * static_cast<double>(from.size())});
}

void Replier::release(uint64_t acknowledged) {
  while (!waiting_.empty() && waiting_.front().index <= acknowledged) {
    transmit(waiting_.front());
    waiting_.pop_front();
  }
}

void Replier::transmit(const Waiting& waiting) {
  To& to = this->to(waiting.worker);
  if (to.reply.sequence != waiting.sequence) return;
  const uint64_t stream = ring_.stream(index_, waiting.sequence);
  to.sending.push_back(node_.endpoint().send(waiting.worker, reply_tag(stream),
                                             std::as_bytes(std::span<const Reply>(&to.reply, 1))));
  if (to.parameters.empty()) return;
  to.pieces_sent = 0;
  if (to.by_layers && pieces_.size() > 1) return send_next_piece(waiting.worker);
  to.sending.push_back(
      node_.endpoint().send(waiting.worker, parameters_tag(stream), bytes_of(to.parameters)));
}

// One at a time: what the first layers need would share the network with the rest otherwise.
void Replier::send_next_piece(int worker) {
  To& to = this->to(worker);
  const size_t number = to.pieces_sent++;
  const Range piece = pieces_[number];
  Handle sending = node_.endpoint().send(
      worker, parameters_tag(ring_.stream(index_, to.reply.sequence), number),
      bytes_of(to.parameters.subspan(piece.begin - shard_.range().begin, piece.size())));
  if (to.pieces_sent == pieces_.size())
    to.sending.push_back(std::move(sending));
  else
    inbox_.watch(
        std::move(sending),
        {.kind = Arrival::kSent, .shard = index_, .peer = worker, .index = to.reply.sequence});
}

void Replier::piece_sent(const Arrival& arrival, const Completion& completion, bool present) {
  const To& to = this->to(arrival.peer);
  const bool goes_on = present && completion.state == State::kDone &&
                       to.reply.sequence == arrival.index && to.pieces_sent < pieces_.size();
  if (goes_on) send_next_piece(arrival.peer);
}

void Replier::hand_over() {
  for (To& to : workers_) to.heard = false;
  waiting_.clear();
}

void Replier::finish_sending() {
  for (To& to : workers_)
    for (Handle& handle : to.sending)
      if (handle.pending()) node_.endpoint().wait(handle, node_.timeout_s());
}

}  // namespace tutti::parameter_server

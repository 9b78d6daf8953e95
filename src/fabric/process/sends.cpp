#include "fabric/process/sends.h"

#include "fabric/process/ucx_request.h"

namespace tutti::process {

void Sends::count(Rank to, size_t bytes) {
  ++traffic_.messages_sent;
  traffic_.bytes_sent += bytes;
  peer(to).bytes_sent += bytes;
}

std::vector<uint64_t> Sends::bytes_by_peer() const {
  std::vector<uint64_t> bytes;
  for (const Peer& other : peers_) bytes.push_back(other.bytes_sent);
  return bytes;
}

void Sends::begin(Operation& operation) {
  Peer& other = peer(operation.peer);
  Channel& channel = *connections_.channel(operation.peer);
  if (channel.connected() && other.queue.empty() && transmit(operation, channel)) return;
  operation.phase = Phase::kQueued;
  other.queue.push_back(&operation);
  ++queued_;
}

bool Sends::transmit(Operation& operation, Channel& channel) {
  if (operation.bytes > kEagerBytes) return offer(operation, channel);
  operation.phase = Phase::kPosted;
  Envelope& envelope = envelopes_.seal(operation, channel);
  void* request = envelope.loan.send(channel.endpoint(), operation.data, operation.bytes,
                                     operation.tag.bits(), send_param(on_sent, &envelope));
  if (UCS_PTR_IS_PTR(request)) return true;
  envelopes_.unseal(envelope);
  if (request == nullptr)
    operation.end(State::kDone, operation.bytes);
  else  // only a broken endpoint refuses; the launcher will say that its peer is lost
    operation.phase = Phase::kStranded;
  return true;
}

bool Sends::offer(Operation& operation, Channel& channel) {
  if (connections_.near(operation.peer)) {
    if (!offers_.open(operation)) return false;
  } else {
    if (courier_.must_wait(operation.bytes, channel)) return false;
    operation.phase = Phase::kOffered;
    if (courier_.push(operation, channel)) return true;
    courier_.offer(operation, channel);
  }
  send_notice(channel.endpoint(), operation.notice | operation.tag.bits());
  return true;
}

void Sends::on_sent(void* request, ucs_status_t status, void* user_data) {
  auto& envelope = *static_cast<Envelope*>(user_data);
  ucp_request_free(request);
  Operation* operation = envelope.pool->unseal(envelope);
  if (!operation) return;
  if (status == UCS_OK)
    operation->end(State::kDone, operation->bytes);
  else
    operation->phase = Phase::kStranded;
}

void Sends::flush() {
  for (size_t rank = 0; rank < peers_.size(); ++rank) {
    std::deque<Operation*>& queue = peers_[rank].queue;
    Channel* channel = connections_.channel(static_cast<Rank>(rank));
    while (!queue.empty() && channel && channel->connected()) {
      if (!transmit(*queue.front(), *channel)) break;
      queue.pop_front();
      --queued_;
    }
  }
}

void Sends::cancel(Operation& operation) {
  switch (operation.phase) {
    case Phase::kQueued:
      std::erase(peer(operation.peer).queue, &operation);
      --queued_;
      break;
    case Phase::kPosted:
      // It cannot be called back any more: a copy of it is sent.
      operation.envelope->loan.recall_send();
      operation.envelope->operation = nullptr;
      operation.envelope = nullptr;
      operation.end(State::kDone, operation.bytes);
      break;
    case Phase::kOffered:
      if (connections_.near(operation.peer))
        offers_.cancel(operation);
      else
        courier_.withdraw(operation);
      break;
    default:
      break;
  }
}

void Sends::end_by_loss(Operation& operation) {
  if (operation.envelope) {
    // Half sent. The channel makes no progress any more, so its buffer is free.
    operation.envelope->channel->abandon();
    envelopes_.unseal(*operation.envelope);
  }
  if (operation.phase == Phase::kOffered && connections_.near(operation.peer))
    offers_.close(operation);
  operation.end(State::kPeerLost, 0);
}

void Sends::forget(Rank rank) {
  queued_ -= peer(rank).queue.size();
  peer(rank).queue.clear();
}

}  // namespace tutti::process

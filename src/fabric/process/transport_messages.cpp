// The life of a message: sends and receives. Large ones are in transport_large.cpp, the end of
// those that are cancelled in transport_cancel.cpp.
#include <algorithm>

#include "core/error.h"
#include "fabric/process/transport.h"
#include "fabric/process/ucx_request.h"

namespace tutti::process {
Operation& Transport::begin(bool sending, Rank peer, Tag tag, const std::byte* data, size_t bytes) {
  Operation& operation = operations_.take();
  operation.serial = ++serial_;
  operation.sending = sending;
  operation.peer = peer;
  operation.tag = tag;
  operation.data = const_cast<std::byte*>(data);  // written to only if it is a receive's
  operation.bytes = bytes;
  return operation;
}

void Transport::end(Operation& operation, State state, size_t bytes) {
  const Rank peer = operation.source != kAnyRank ? operation.source : operation.peer;
  operation.result = {state, peer, operation.tag, bytes};
  operation.phase = Phase::kEnded;
}

Envelope& Transport::seal(Operation& operation, Channel& channel) {
  Envelope& envelope = envelopes_.take(channel, operation);
  operation.envelope = &envelope;
  return envelope;
}

Operation* Transport::unseal(Envelope& envelope) {
  Operation* operation = envelope.operation;
  if (operation) operation->envelope = nullptr;
  envelopes_.give_back(envelope);
  return operation;
}

Operation& Transport::send(Rank to, Tag tag, std::span<const std::byte> data) {
  Operation& operation = begin(true, to, tag, data.data(), data.size());
  Peer& other = peer(to);
  if (!other.alive) {
    end(operation, State::kPeerLost, 0);
    return operation;
  }
  ++traffic_.messages_sent;
  traffic_.bytes_sent += data.size();
  other.bytes_sent += data.size();
  if (!other.channel) dial(to);
  if (!other.channel->connected() || !other.queue.empty() || !transmit(operation)) {
    operation.phase = Phase::kQueued;
    other.queue.push_back(&operation);
    ++queued_;
  }
  return operation;
}

std::vector<uint64_t> Transport::bytes_by_peer() const {
  std::vector<uint64_t> bytes;
  for (const Peer& other : peers_) bytes.push_back(other.bytes_sent);
  return bytes;
}

bool Transport::transmit(Operation& operation) {
  Channel& channel = *peer(operation.peer).channel;
  if (operation.bytes > kEagerBytes) {
    if (near(operation.peer) && !rendezvous_.open(operation)) return false;
    if (!near(operation.peer) && courier_.must_wait(operation.bytes, channel)) return false;
    operation.phase = Phase::kOffered;
    if (near(operation.peer)) {
      offered_.push_back(&operation);
    } else {
      if (courier_.push(operation, channel)) return true;
      courier_.offer(operation, channel);
    }
    notify(channel, operation.notice | operation.tag.bits());
    return true;
  }
  operation.phase = Phase::kPosted;
  Envelope& envelope = seal(operation, channel);
  void* request = envelope.loan.send(channel.endpoint(), operation.data, operation.bytes,
                                     operation.tag.bits(), send_param(on_sent, &envelope));
  if (UCS_PTR_IS_PTR(request)) return true;
  unseal(envelope);
  if (request == nullptr)
    end(operation, State::kDone, operation.bytes);
  else  // only a broken endpoint refuses; the launcher will say that its peer is lost
    operation.phase = Phase::kStranded;
  return true;
}

void Transport::on_sent(void* request, ucs_status_t status, void* user_data) {
  auto& envelope = *static_cast<Envelope*>(user_data);
  Transport& self = envelope.channel->owner();
  ucp_request_free(request);
  Operation* operation = self.unseal(envelope);
  if (!operation) return;
  if (status == UCS_OK)
    self.end(*operation, State::kDone, operation->bytes);
  else
    operation->phase = Phase::kStranded;
}

void Transport::on_discarded(void* request, ucs_status_t, void*) { ucp_request_free(request); }

void Transport::notify(Channel& channel, uint64_t tag) {
  const ucp_request_param_t param = send_param(on_discarded, nullptr);
  ucp_tag_send_nbx(channel.endpoint(), nullptr, 0, tag, &param);
}

Operation& Transport::receive(Rank from, Tag tag, std::span<std::byte> buffer) {
  Operation& operation = begin(false, from, tag, buffer.data(), buffer.size());
  const auto ahead = [&](const Operation* other) { return other->tag == tag; };
  if (from == kAnyRank || std::any_of(deferred_.begin(), deferred_.end(), ahead)) {
    defer(operation);
  } else if (!peer(from).alive) {
    receive_from_lost(operation);
  } else {
    if (!peer(from).channel) dial(from);
    post_receive(operation, *peer(from).channel);
  }
  settle_claims();
  return operation;
}

void Transport::post_receive(Operation& operation, Channel& channel) {
  if (adopt_stray(operation, channel)) return;
  operation.phase = Phase::kPosted;
  operation.source = channel.peer();
  Envelope& envelope = seal(operation, channel);
  void* request =
      envelope.loan.receive(channel.worker(), operation.data, operation.bytes, operation.tag.bits(),
                            kTagMask, receive_param(on_received, &envelope));
  if (UCS_PTR_IS_ERR(request)) check_ucx(UCS_PTR_STATUS(request), "receive", channel.peer());
  // Unless it was there already, and the envelope is used again.
  if (operation.envelope == &envelope) envelope.request = request;
}

void Transport::on_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                            void* user_data) {
  auto& envelope = *static_cast<Envelope*>(user_data);
  envelope.request = nullptr;
  envelope.status = status;
  envelope.message = *info;  // it lies in the request
  ucp_request_free(request);
  envelope.channel->owner().arrive(envelope);
}

void Transport::arrive(Envelope& envelope) {
  if (envelope.stray) {  // until a receive adopts it
    envelope.whole = true;
    return;
  }
  Channel& channel = *envelope.channel;
  const ucp_tag_recv_info_t message = envelope.message;
  ucs_status_t status = envelope.status;
  if (envelope.operation && envelope.loan.recalled() && status == UCS_OK) {
    // It was begun for another receive.
    if (message.length > envelope.operation->bytes)
      status = UCS_ERR_MESSAGE_TRUNCATED;
    else
      std::copy_n(envelope.loan.data(), message.length, envelope.operation->data);
  }
  Operation* operation = unseal(envelope);
  if (!operation) return;
  if (status == UCS_ERR_CANCELED) {
    operation->phase = Phase::kWithdrawn;
  } else if (status != UCS_OK && status != UCS_ERR_MESSAGE_TRUNCATED) {
    operation->phase = Phase::kStranded;
  } else if (operation->phase == Phase::kPulling) {
    if (message.length == 0) operation->total = 0;
    operation->moved += message.length;
    claims_.push_back(operation);
  } else if (message.sender_tag & kNoticeFlag) {
    operation->notice = message.sender_tag & ~kTagMask;
    operation->phase = Phase::kMatched;
    claims_.push_back(operation);
  } else {
    if (message.sender_tag & kPushFlag) courier_.acknowledge(channel, message.length);
    end(*operation, status == UCS_OK ? State::kDone : State::kTruncated, message.length);
  }
}

// What had arrived when an operation is deferred went to those deferred before it, so only this one
// needs to look.
void Transport::defer(Operation& operation) {
  operation.phase = Phase::kDeferred;
  for (size_t i = 0; i < peers_.size(); ++i) {
    const size_t rank = (next_source_ + i) % peers_.size();
    Channel* channel = peers_[rank].channel.get();
    if (!channel || (operation.peer != kAnyRank && operation.peer != channel->peer())) continue;
    if (!take_arrived(operation, *channel)) continue;
    if (operation.peer == kAnyRank) next_source_ = rank + 1;
    return;
  }
  deferred_.push_back(&operation);
  if (operation.peer != kAnyRank && !peer(operation.peer).alive) end_by_loss(operation);
}

// Receives from anybody cannot be posted to one UCX worker: they look at what has arrived.
void Transport::match_deferred(Channel& channel) {
  for (size_t i = 0; i < deferred_.size();) {
    Operation& operation = *deferred_[i];
    const bool eligible = operation.peer == kAnyRank || operation.peer == channel.peer();
    if (eligible && take_arrived(operation, channel))
      deferred_.erase(deferred_.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
}

bool Transport::take_arrived(Operation& operation, Channel& channel) {
  if (adopt_stray(operation, channel)) return true;
  ucp_tag_recv_info_t info{};
  ucp_tag_message_h message =
      ucp_tag_probe_nb(channel.worker(), operation.tag.bits(), kTagMask, 1, &info);
  if (message == nullptr) return false;
  operation.phase = Phase::kPosted;
  operation.source = channel.peer();
  Envelope& envelope = seal(operation, channel);
  void* request = envelope.loan.take(channel.worker(), operation.data, operation.bytes, message,
                                     receive_param(on_received, &envelope));
  if (UCS_PTR_IS_ERR(request)) check_ucx(UCS_PTR_STATUS(request), "receive", channel.peer());
  if (operation.envelope != &envelope) return true;
  envelope.request = request;
  if (!channel.closed()) return true;
  // The rest of it will never come.
  channel.abandon();
  unseal(envelope);
  operation.source = kAnyRank;
  operation.phase = Phase::kDeferred;
  return false;
}

void Transport::receive_from_lost(Operation& operation) {
  Channel* channel = peer(operation.peer).channel.get();
  if (channel && take_arrived(operation, *channel)) {
    settle_claims();
    if (!operation.pending()) return;
  }
  end(operation, State::kPeerLost, 0);
}

}  // namespace tutti::process

// The life of a message: sends, receives, cancellation. Large ones are in transport_large.cpp.
#include <algorithm>

#include "core/error.h"
#include "fabric/process/transport.h"
#include "fabric/process/ucx_request.h"

namespace tutti::process {
Operation& Transport::begin(bool sending, Rank peer, Tag tag, const std::byte* data, size_t bytes) {
  Operation& operation = operations_.take();
  operation.owner = this;
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
  operation.in_ucx = true;
  const ucp_request_param_t param = send_param(on_sent, &operation);
  void* request = ucp_tag_send_nbx(channel.endpoint(), operation.data, operation.bytes,
                                   operation.tag.bits(), &param);
  if (request == nullptr) {
    operation.in_ucx = false;
    end(operation, State::kDone, operation.bytes);
  } else if (UCS_PTR_IS_ERR(request)) {
    // Only a broken endpoint refuses; the launcher will say that its peer is lost.
    operation.in_ucx = false;
    operation.phase = Phase::kStranded;
  } else if (operation.in_ucx) {
    operation.request = request;
  }
  return true;
}

void Transport::on_sent(void* request, ucs_status_t status, void* user_data) {
  auto& operation = *static_cast<Operation*>(user_data);
  operation.in_ucx = false;
  operation.request = nullptr;
  ucp_request_free(request);
  if (status == UCS_OK)
    operation.owner->end(operation, State::kDone, operation.bytes);
  else
    operation.phase = Phase::kStranded;
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
  operation.phase = Phase::kPosted;
  operation.source = channel.peer();
  operation.in_ucx = true;
  const ucp_request_param_t param = receive_param(on_received, &operation);
  void* request = ucp_tag_recv_nbx(channel.worker(), operation.data, operation.bytes,
                                   operation.tag.bits(), kTagMask, &param);
  if (UCS_PTR_IS_ERR(request)) check_ucx(UCS_PTR_STATUS(request), "receive", channel.peer());
  if (operation.in_ucx) operation.request = request;
}

void Transport::on_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                            void* user_data) {
  auto& operation = *static_cast<Operation*>(user_data);
  Transport& self = *operation.owner;
  operation.in_ucx = false;
  operation.request = nullptr;
  const ucp_tag_recv_info_t message = *info;  // it lies in the request
  ucp_request_free(request);
  if (status == UCS_ERR_CANCELED) {
    operation.phase = Phase::kWithdrawn;
  } else if (status != UCS_OK && status != UCS_ERR_MESSAGE_TRUNCATED) {
    operation.phase = Phase::kStranded;
  } else if (operation.phase == Phase::kPulling) {
    operation.moved += message.length;
    self.claims_.push_back(&operation);
  } else if (message.sender_tag & kNoticeFlag) {
    operation.notice = message.sender_tag & ~kTagMask;
    operation.phase = Phase::kMatched;
    self.claims_.push_back(&operation);
  } else {
    if (message.sender_tag & kPushFlag)
      self.courier_.acknowledge(*self.peer(operation.source).channel, message.length);
    self.end(operation, status == UCS_OK ? State::kDone : State::kTruncated, message.length);
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
  if (operation.peer != kAnyRank && !peer(operation.peer).alive) end_by_loss(operation, nullptr);
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
  ucp_tag_recv_info_t info{};
  ucp_tag_message_h message =
      ucp_tag_probe_nb(channel.worker(), operation.tag.bits(), kTagMask, 1, &info);
  if (message == nullptr) return false;
  operation.phase = Phase::kPosted;
  operation.source = channel.peer();
  operation.in_ucx = true;
  const ucp_request_param_t param = receive_param(on_received, &operation);
  void* request =
      ucp_tag_msg_recv_nbx(channel.worker(), operation.data, operation.bytes, message, &param);
  if (UCS_PTR_IS_ERR(request)) check_ucx(UCS_PTR_STATUS(request), "receive", channel.peer());
  if (!operation.in_ucx) return true;
  operation.request = request;
  if (!channel.closed()) return true;
  // The rest of it will never come.
  channel.abandon();
  operation.in_ucx = false;
  operation.request = nullptr;
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

bool Transport::try_cancel(Operation& operation) {
  switch (operation.phase) {
    case Phase::kQueued: {
      std::deque<Operation*>& queue = peer(operation.peer).queue;
      std::erase(queue, &operation);
      --queued_;
      break;
    }
    case Phase::kDeferred:
      std::erase(deferred_, &operation);
      break;
    case Phase::kOffered:
      if (!near(operation.peer)) {
        if (!courier_.withdraw(operation)) return !operation.pending();
        break;
      }
      if (!rendezvous_.revoke(operation)) {
        check_offers();
        return !operation.pending();
      }
      rendezvous_.close(operation);
      std::erase(offered_, &operation);
      break;
    case Phase::kPosted:
    case Phase::kPulling:
      if (operation.phase == Phase::kPulling && !near(operation.source)) {
        courier_.detach(operation);
        break;
      }
      if (!operation.sending && operation.request)
        ucp_request_cancel(peer(operation.source).channel->worker(), operation.request);
      if (operation.phase == Phase::kEnded) return true;
      if (operation.phase != Phase::kWithdrawn) return false;
      // A large message, half received: for its sender it has been taken.
      if (operation.notice != 0) rendezvous_.confirm(operation.source, operation);
      break;
    case Phase::kMatched:
      settle_claims();
      return operation.phase == Phase::kEnded || try_cancel(operation);
    case Phase::kEnded:
      return true;
    case Phase::kStranded:
    case Phase::kWithdrawn:
    case Phase::kFree:
      break;
  }
  end(operation, State::kCancelled, 0);
  return true;
}

void Transport::give_up(Operation& operation) {
  const Rank rank = operation.source != kAnyRank ? operation.source : operation.peer;
  Channel& channel = *peer(rank).channel;
  channel.close();
  channel.abandon();
  stop_progress(channel);
  courier_.forget(channel);
  if (operation.phase == Phase::kOffered && near(rank)) {
    rendezvous_.close(operation);
    std::erase(offered_, &operation);
  }
  operation.in_ucx = false;
  if (operation.pending()) end(operation, State::kCancelled, 0);
}

}  // namespace tutti::process

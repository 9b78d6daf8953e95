#include "fabric/process/receives.h"

#include <algorithm>
#include <utility>

namespace tutti::process {

bool Receives::defers(const Operation& operation) const {
  const auto ahead = [&](const Operation* other) { return other->tag == operation.tag; };
  return operation.peer == kAnyRank || std::any_of(deferred_.begin(), deferred_.end(), ahead);
}

// What had arrived when an operation is deferred went to those deferred before it, so only this one
// needs to look.
void Receives::defer(Operation& operation) {
  operation.phase = Phase::kDeferred;
  const auto nodes = static_cast<size_t>(connections_.nodes());
  for (size_t i = 0; i < nodes; ++i) {
    const size_t rank = (next_source_ + i) % nodes;
    Channel* channel = connections_.channel(static_cast<Rank>(rank));
    if (!channel || (operation.peer != kAnyRank && operation.peer != channel->peer())) continue;
    if (!take_arrived(operation, *channel)) continue;
    if (operation.peer == kAnyRank) next_source_ = rank + 1;
    return;
  }
  deferred_.push_back(&operation);
  if (operation.peer != kAnyRank && !connections_.alive(operation.peer)) end_by_loss(operation);
}

void Receives::post(Operation& operation, Channel& channel) {
  if (adopt_stray(operation, channel)) return;
  operation.phase = Phase::kPosted;
  operation.source = channel.peer();
  envelopes_.receive(operation, channel, operation.data, operation.bytes, operation.tag.bits(),
                     kTagMask);
}

void Receives::take_from_lost(Operation& operation) {
  Channel* channel = connections_.channel(operation.peer);
  if (channel && take_arrived(operation, *channel)) {
    fetches_.settle();
    if (!operation.pending()) return;
  }
  operation.end(State::kPeerLost, 0);
}

void Receives::match_again(Operation& operation) {
  Channel& channel = *connections_.channel(operation.source);
  operation.notice = 0;
  if (operation.peer == kAnyRank) {
    wait_for_anybody(operation);
    rematch_ = true;
  } else if (channel.closed()) {
    operation.phase = Phase::kStranded;
  } else {
    post(operation, channel);
  }
}

// Before all others, since it was the first to find something.
void Receives::wait_for_anybody(Operation& operation) {
  operation.source = kAnyRank;
  operation.phase = Phase::kDeferred;
  deferred_.push_front(&operation);
}

void Receives::match(Channel& channel) {
  for (size_t i = 0; i < deferred_.size();) {
    Operation& operation = *deferred_[i];
    const bool eligible = operation.peer == kAnyRank || operation.peer == channel.peer();
    if (eligible && take_arrived(operation, channel))
      deferred_.erase(deferred_.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
}

void Receives::progress() {
  if (!std::exchange(rematch_, false)) return;
  for (Channel* channel : connections_.progressing()) match(*channel);
}

bool Receives::take_arrived(Operation& operation, Channel& channel) {
  if (adopt_stray(operation, channel)) return true;
  ucp_tag_recv_info_t info{};
  ucp_tag_message_h message =
      ucp_tag_probe_nb(channel.worker(), operation.tag.bits(), kTagMask, 1, &info);
  if (message == nullptr) return false;
  operation.phase = Phase::kPosted;
  operation.source = channel.peer();
  Envelope& envelope = envelopes_.receive(operation, channel, message);
  if (operation.envelope != &envelope || !channel.closed()) return true;
  // The rest of it will never come.
  channel.abandon();
  envelopes_.unseal(envelope);
  operation.source = kAnyRank;
  operation.phase = Phase::kDeferred;
  return false;
}

void Receives::arrive(Envelope& envelope) {
  if (envelope.stray)  // until a receive adopts it
    envelope.whole = true;
  else
    finish(envelope);
}

void Receives::finish(Envelope& envelope) {
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
  Operation* operation = envelopes_.unseal(envelope);
  if (!operation) return;
  if (status == UCS_ERR_CANCELED) {
    operation->phase = Phase::kWithdrawn;
  } else if (status != UCS_OK && status != UCS_ERR_MESSAGE_TRUNCATED) {
    operation->phase = Phase::kStranded;
  } else if (operation->phase == Phase::kPulling) {
    if (message.length == 0) operation->total = 0;
    operation->moved += message.length;
    fetches_.add(*operation);
  } else if (message.sender_tag & kNoticeFlag) {
    operation->notice = message.sender_tag & ~kTagMask;
    operation->phase = Phase::kMatched;
    fetches_.add(*operation);
  } else {
    if (message.sender_tag & kPushFlag) courier_.acknowledge(channel, message.length);
    operation->end(status == UCS_OK ? State::kDone : State::kTruncated, message.length);
  }
}

void Receives::cancel(Operation& operation) {
  fetches_.settle();
  switch (operation.phase) {
    case Phase::kDeferred:
      std::erase(deferred_, &operation);
      break;
    case Phase::kPosted:
      take_back(operation);
      if (operation.envelope) keep_stray(operation);
      break;
    case Phase::kPulling:
      fetches_.cancel(operation);
      break;
    default:
      break;
  }
}

void Receives::end_by_loss(Operation& operation) {
  take_back(operation);
  if (operation.envelope) {
    // Half arrived. The channel makes no progress any more, so its buffer is free.
    operation.envelope->channel->abandon();
    envelopes_.unseal(*operation.envelope);
  }
  std::erase(deferred_, &operation);
  if (operation.peer == kAnyRank)  // somebody else may still send what it waits for
    wait_for_anybody(operation);
  else
    operation.end(State::kPeerLost, 0);
}

// A cancelled receive takes nothing, not even half a message: the next one that matches gets it.
// One message of a peer at a time is half there, so whoever waits behind has met none.
void Receives::keep_stray(Operation& operation) {
  Envelope& stray = *operation.envelope;
  Channel& channel = *stray.channel;
  stray.loan.recall_receive();
  stray.stray = true;
  stray.tag = operation.tag.bits();
  stray.operation = nullptr;
  operation.envelope = nullptr;
  strays_.push_back(&stray);

  std::vector<Operation*> behind;
  operations_.for_each_pending([&](Operation& other) {
    if (!other.sending && other.phase == Phase::kPosted && other.tag == operation.tag &&
        other.envelope && other.envelope->channel == &channel)
      behind.push_back(&other);
  });
  std::sort(behind.begin(), behind.end(),
            [](const Operation* a, const Operation* b) { return a->serial < b->serial; });
  for (Operation* other : behind) take_back(*other);
  for (Operation* other : behind)
    if (other->phase == Phase::kWithdrawn) post(*other, channel);
  match(channel);
}

bool Receives::adopt_stray(Operation& operation, const Channel& channel) {
  const auto found = std::find_if(strays_.begin(), strays_.end(), [&](const Envelope* stray) {
    return stray->channel == &channel && stray->tag == operation.tag.bits();
  });
  if (found == strays_.end()) return false;
  Envelope& stray = **found;
  strays_.erase(found);
  operation.phase = Phase::kPosted;
  operation.source = channel.peer();
  operation.envelope = &stray;
  stray.operation = &operation;
  stray.stray = false;
  if (stray.whole) finish(stray);
  return true;
}

void Receives::forget_strays(const Channel& channel, bool whole) {
  std::erase_if(strays_, [&](Envelope* stray) {
    if (stray->channel != &channel || (stray->whole && !whole)) return false;
    if (!stray->whole) stray->channel->abandon();
    envelopes_.give_back(*stray);
    return true;
  });
}

}  // namespace tutti::process

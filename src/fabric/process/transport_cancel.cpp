// Cancelling: an operation ends at once, whatever UCX and its peer still have to do with it.
#include <algorithm>

#include "fabric/process/transport.h"

namespace tutti::process {

void Transport::cancel_all() {
  operations_.for_each_pending([&](Operation& operation) { cancel(operation); });
}

void Transport::cancel(Operation& operation) {
  if (operation.sending)
    cancel_send(operation);
  else
    cancel_receive(operation);
  if (operation.pending()) end(operation, State::kCancelled, 0);
}

void Transport::cancel_send(Operation& operation) {
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
      end(operation, State::kDone, operation.bytes);
      break;
    case Phase::kOffered:
      if (!near(operation.peer)) {
        courier_.withdraw(operation);
      } else if (rendezvous_.revoke(operation)) {
        free_offer(operation);
        std::erase(offered_, &operation);
      } else {
        check_offers();  // the receiver has it
      }
      break;
    default:
      break;
  }
}

void Transport::cancel_receive(Operation& operation) {
  settle_claims();
  switch (operation.phase) {
    case Phase::kDeferred:
      std::erase(deferred_, &operation);
      break;
    case Phase::kPosted:
      take_back(operation);
      if (operation.envelope) keep_stray(operation);
      break;
    case Phase::kPulling:
      if (!near(operation.source)) {
        courier_.detach(operation);
        break;
      }
      take_back(operation);
      if (operation.envelope) {  // the piece is dropped when all of it has come
        operation.envelope->loan.recall_receive();
        operation.envelope->operation = nullptr;
        operation.envelope = nullptr;
      }
      // A large message, half received: for its sender it has been taken.
      rendezvous_.confirm(operation.source, operation);
      break;
    default:
      break;
  }
}

// UCX gives back a receive that no message has met yet.
void Transport::take_back(Operation& operation) {
  const Envelope* envelope = operation.envelope;
  if (envelope && envelope->request)
    ucp_request_cancel(envelope->channel->worker(), envelope->request);
}

// A cancelled receive takes nothing, not even half a message: the next one that matches gets it.
// One message of a peer at a time is half there, so whoever waits behind has met none.
void Transport::keep_stray(Operation& operation) {
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
    if (other->phase == Phase::kWithdrawn) post_receive(*other, channel);
  match_deferred(channel);
}

bool Transport::adopt_stray(Operation& operation, const Channel& channel) {
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
  if (stray.whole) arrive(stray);
  return true;
}

// Those of a lost peer that will never be whole, or all of them.
void Transport::forget_strays(const Channel& channel, bool whole) {
  std::erase_if(strays_, [&](Envelope* stray) {
    if (stray->channel != &channel || (stray->whole && !whole)) return false;
    if (!stray->whole) stray->channel->abandon();
    envelopes_.give_back(*stray);
    return true;
  });
}

}  // namespace tutti::process

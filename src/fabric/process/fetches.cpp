#include "fabric/process/fetches.h"

#include <algorithm>
#include <utility>

#include "fabric/process/fabric_tags.h"
#include "fabric/process/ucx_request.h"

namespace tutti::process {

Fetches::Fetches(Rendezvous& rendezvous, Connections& connections, Envelopes& envelopes,
                 Courier& courier, MatchAgain match_again)
    : rendezvous_(rendezvous),
      connections_(connections),
      envelopes_(envelopes),
      courier_(courier),
      match_again_(std::move(match_again)) {}

void Fetches::settle() {
  while (!noted_.empty()) {
    Operation& operation = *noted_.back();
    noted_.pop_back();
    if (operation.phase == Phase::kPulling)
      pull_next(operation);
    else
      begin(operation);
  }
}

void Fetches::begin(Operation& operation) {
  if (!connections_.near(operation.source))
    return courier_.pull(operation, *connections_.channel(operation.source));
  size_t bytes = 0;
  switch (rendezvous_.fetch(operation.source, operation, bytes)) {
    case Rendezvous::Fetch::kDone:
      operation.end(State::kDone, bytes);
      break;
    case Rendezvous::Fetch::kTruncated:
      operation.end(State::kTruncated, bytes);
      break;
    case Rendezvous::Fetch::kForbidden:
      pull(operation, bytes);
      break;
    case Rendezvous::Fetch::kGone:
      operation.phase = Phase::kStranded;
      break;
    case Rendezvous::Fetch::kRevoked:
      match_again_(operation);
      break;
  }
}

void Fetches::pull(Operation& operation, size_t bytes) {
  Channel& channel = *connections_.channel(operation.source);
  operation.phase = Phase::kPulling;
  operation.total = bytes;
  operation.moved = 0;
  if (channel.closed()) return;
  send_notice(channel.endpoint(), kPullTag | operation.notice);
  pull_next(operation);
}

// Asks for the piece after the next one, so that the sender always has one to send.
void Fetches::pull_next(Operation& operation) {
  Channel& channel = *connections_.channel(operation.source);
  if (operation.total == 0) return match_again_(operation);
  if (operation.moved >= operation.total) {
    const bool fits = operation.moved == operation.total;
    if (!rendezvous_.confirm(operation.source, operation)) return match_again_(operation);
    operation.end(fits ? State::kDone : State::kTruncated, operation.moved);
    return;
  }
  const size_t left = operation.total - operation.moved;
  if (channel.closed()) return;
  if (left > kLargePieceBytes) send_notice(channel.endpoint(), kPullTag | operation.notice);
  envelopes_.receive(operation, channel, operation.data + operation.moved,
                     std::min(left, kLargePieceBytes), kPushTag | operation.notice, ~uint64_t{0});
}

void Fetches::cancel(Operation& operation) {
  if (!connections_.near(operation.source)) return courier_.detach(operation);
  take_back(operation);
  if (operation.envelope) {  // the piece is dropped when all of it has come
    operation.envelope->loan.recall_receive();
    operation.envelope->operation = nullptr;
    operation.envelope = nullptr;
  }
  // A large message, half received: for its sender it has been taken.
  rendezvous_.confirm(operation.source, operation);
}

}  // namespace tutti::process

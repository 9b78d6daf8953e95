// Large messages: what becomes of a receive that met the notice of one.
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "fabric/process/fabric_tags.h"
#include "fabric/process/transport.h"
#include "fabric/process/ucx_request.h"

namespace tutti::process {
namespace {

// Between fabrics only: "send me the offer named in the upper bits", and the bytes themselves.
// Two pieces under way fill the receive queue, and no more: that is what a cancel has to copy.
constexpr size_t kLargePieceBytes = 8 * kEagerBytes;

}  // namespace

void Transport::settle_claims() {
  while (!claims_.empty()) {
    Operation& operation = *claims_.back();
    claims_.pop_back();
    claim(operation);
  }
}

void Transport::claim(Operation& operation) {
  if (operation.phase == Phase::kPulling) return pull_next(operation);
  if (!near(operation.source)) return courier_.pull(operation, *peer(operation.source).channel);
  size_t bytes = 0;
  switch (rendezvous_.fetch(operation.source, operation, bytes)) {
    case Rendezvous::Fetch::kDone:
      end(operation, State::kDone, bytes);
      break;
    case Rendezvous::Fetch::kTruncated:
      end(operation, State::kTruncated, bytes);
      break;
    case Rendezvous::Fetch::kForbidden:
      pull(operation, bytes);
      break;
    case Rendezvous::Fetch::kGone:
      operation.phase = Phase::kStranded;
      break;
    case Rendezvous::Fetch::kRevoked:
      match_again(operation);
      break;
  }
}

// Its message was called back by the sender: as if it had never been sent.
void Transport::match_again(Operation& operation) {
  Channel& channel = *peer(operation.source).channel;
  operation.notice = 0;
  if (operation.peer == kAnyRank) {
    operation.source = kAnyRank;
    operation.phase = Phase::kDeferred;
    deferred_.push_front(&operation);
    rematch_ = true;
  } else if (channel.closed()) {
    operation.phase = Phase::kStranded;
  } else {
    post_receive(operation, channel);
  }
}

void Transport::pull(Operation& operation, size_t bytes) {
  Channel& channel = *peer(operation.source).channel;
  operation.phase = Phase::kPulling;
  operation.total = bytes;
  operation.moved = 0;
  if (channel.closed()) return;
  notify(channel, kPullTag | operation.notice);
  pull_next(operation);
}

// Asks for the piece after the next one, so that the sender always has one to send.
void Transport::pull_next(Operation& operation) {
  Channel& channel = *peer(operation.source).channel;
  if (operation.total == 0) return match_again(operation);
  if (operation.moved >= operation.total) {
    const bool fits = operation.moved == operation.total;
    if (!rendezvous_.confirm(operation.source, operation)) return match_again(operation);
    end(operation, fits ? State::kDone : State::kTruncated, operation.moved);
    return;
  }
  const size_t left = operation.total - operation.moved;
  if (channel.closed()) return;
  if (left > kLargePieceBytes) notify(channel, kPullTag | operation.notice);
  Envelope& envelope = seal(operation, channel);
  void* request = envelope.loan.receive(
      channel.worker(), operation.data + operation.moved, std::min(left, kLargePieceBytes),
      kPushTag | operation.notice, ~uint64_t{0}, receive_param(on_received, &envelope));
  if (UCS_PTR_IS_ERR(request)) check_ucx(UCS_PTR_STATUS(request), "receive", channel.peer());
  if (operation.envelope == &envelope) envelope.request = request;
}

void Transport::expect_pulls(Channel& channel) {
  const ucp_request_param_t param = receive_param(on_pull, &channel);
  const size_t waiting = pulls_.size();
  void* request = ucp_tag_recv_nbx(channel.worker(), nullptr, 0, kPullTag, kTagMask, &param);
  // Unless one was there already, and the request is gone again.
  if (!UCS_PTR_IS_ERR(request) && pulls_.size() == waiting) channel.set_standing_receive(request);
}

void Transport::on_pull(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                        void* user_data) {
  auto& channel = *static_cast<Channel*>(user_data);
  channel.set_standing_receive(nullptr);
  if (status == UCS_OK) channel.owner().pulls_.push_back({&channel, info->sender_tag & ~kTagMask});
  ucp_request_free(request);
}

void Transport::serve_pulls() {
  for (const Pull& wanted : std::exchange(pulls_, {})) {
    Channel& channel = *wanted.channel;
    expect_pulls(channel);
    const auto it = std::find_if(offered_.begin(), offered_.end(), [&](Operation* operation) {
      return operation->notice == wanted.notice && operation->peer == channel.peer();
    });
    if (it == offered_.end()) {  // called back: a piece of no bytes says so
      notify(channel, kPushTag | wanted.notice);
      continue;
    }
    Operation& operation = **it;
    // The receiver confirms on the board when it has everything.
    const size_t piece = std::min(operation.bytes - operation.moved, kLargePieceBytes);
    Envelope& envelope = envelopes_.take(channel, operation);
    void* request =
        envelope.loan.send(channel.endpoint(), operation.data + operation.moved, piece,
                           kPushTag | operation.notice, send_param(on_piece_sent, &envelope));
    if (!UCS_PTR_IS_PTR(request)) envelopes_.give_back(envelope);
    operation.moved += piece;
  }
}

void Transport::on_piece_sent(void* request, ucs_status_t, void* user_data) {
  auto& envelope = *static_cast<Envelope*>(user_data);
  ucp_request_free(request);
  envelope.channel->owner().envelopes_.give_back(envelope);
}

void Transport::free_offer(Operation& operation) {
  // What UCX has of it goes out without the caller's memory.
  if (operation.moved > 0)
    envelopes_.for_each_of(operation, [](Envelope& piece) {
      piece.loan.recall_send();
      piece.operation = nullptr;
    });
  rendezvous_.close(operation);
}

}  // namespace tutti::process

#include "fabric/process/offers.h"

#include <algorithm>
#include <utility>

#include "fabric/process/fabric_tags.h"
#include "fabric/process/ucx_request.h"

namespace tutti::process {

void Offers::listen(Channel& channel) {
  listeners_.push_back({this, &channel});
  expect(listeners_.back());
}

bool Offers::open(Operation& operation) {
  if (!rendezvous_.open(operation)) return false;
  operation.phase = Phase::kOffered;
  offered_.push_back(&operation);
  return true;
}

void Offers::cancel(Operation& operation) {
  if (rendezvous_.revoke(operation))
    close(operation);
  else
    check();  // the receiver has it
}

void Offers::close(Operation& operation) {
  free(operation);
  std::erase(offered_, &operation);
}

void Offers::forget(const Channel& channel) {
  std::erase_if(pulls_, [&](const Pull& pull) { return pull.listener->channel == &channel; });
}

void Offers::check() {
  std::erase_if(offered_, [&](Operation* operation) {
    if (!rendezvous_.taken(*operation)) return false;
    free(*operation);
    operation->end(State::kDone, operation->bytes);
    return true;
  });
}

void Offers::expect(Listener& listener) {
  Channel& channel = *listener.channel;
  const ucp_request_param_t param = receive_param(on_pull, &listener);
  const size_t waiting = pulls_.size();
  void* request = ucp_tag_recv_nbx(channel.worker(), nullptr, 0, kPullTag, kTagMask, &param);
  // Unless one was there already, and the request is gone again.
  if (!UCS_PTR_IS_ERR(request) && pulls_.size() == waiting) channel.set_standing_receive(request);
}

void Offers::on_pull(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                     void* user_data) {
  auto& listener = *static_cast<Listener*>(user_data);
  listener.channel->set_standing_receive(nullptr);
  if (status == UCS_OK)
    listener.offers->pulls_.push_back({&listener, info->sender_tag & ~kTagMask});
  ucp_request_free(request);
}

void Offers::serve() {
  for (const Pull& wanted : std::exchange(pulls_, {})) {
    Channel& channel = *wanted.listener->channel;
    expect(*wanted.listener);
    const auto it = std::find_if(offered_.begin(), offered_.end(), [&](Operation* operation) {
      return operation->notice == wanted.notice && operation->peer == channel.peer();
    });
    if (it == offered_.end()) {  // called back: a piece of no bytes says so
      send_notice(channel.endpoint(), kPushTag | wanted.notice);
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

void Offers::on_piece_sent(void* request, ucs_status_t, void* user_data) {
  auto& envelope = *static_cast<Envelope*>(user_data);
  ucp_request_free(request);
  envelope.pool->give_back(envelope);
}

void Offers::free(const Operation& operation) {
  // What UCX has of it goes out without the caller's memory.
  if (operation.moved > 0)
    envelopes_.for_each_of(operation, [](Envelope& piece) {
      piece.loan.recall_send();
      piece.operation = nullptr;
    });
  rendezvous_.close(operation);
}

}  // namespace tutti::process

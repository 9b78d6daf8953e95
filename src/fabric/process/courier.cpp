#include "fabric/process/courier.h"

#include <utility>

#include "fabric/process/fabric_tags.h"
#include "fabric/process/ucx_request.h"

namespace tutti::process {

Courier::Courier(MatchAgain match_again)
    : handshake_(words_), deliveries_(words_), hauls_(words_, std::move(match_again)) {}

void Courier::open(Channel& channel) {
  ears_.push_back({this, &channel, 0});
  listen(ears_.back());
  handshake_.expect(channel);
}

void Courier::acknowledge(Channel& channel, size_t bytes) {
  words_.say(channel, kRequestTag, bytes);
}

void Courier::listen(Ear& ear) {
  const ucp_request_param_t param = receive_param(on_request, &ear);
  const size_t waiting = requests_.size();
  void* request = ucp_tag_recv_nbx(ear.channel->worker(), &ear.word, sizeof ear.word, kRequestTag,
                                   kTagMask, &param);
  // Unless one was there already, and the request is gone again.
  if (!UCS_PTR_IS_ERR(request) && requests_.size() == waiting)
    ear.channel->set_standing_receive(request);
}

void Courier::on_request(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                         void* user_data) {
  auto& ear = *static_cast<Ear*>(user_data);
  ear.channel->set_standing_receive(nullptr);
  if (status == UCS_OK && info->length == sizeof ear.word)
    ear.courier->requests_.push_back({&ear, info->sender_tag & ~kTagMask, ear.word});
  ucp_request_free(request);
}

void Courier::serve(const Request& request) {
  Channel& channel = *request.ear->channel;
  if (channel.closed()) return;
  if (request.notice == 0)  // an acknowledgement
    channel.add_pushed(-static_cast<int64_t>(request.word));
  else
    deliveries_.serve(channel, request.notice, request.word);
}

void Courier::forget(Channel& channel) {
  pushed_.forget(channel);
  deliveries_.forget(channel);
  hauls_.forget(channel);
  std::erase_if(requests_, [&](const Request& other) { return other.ear->channel == &channel; });
  handshake_.forget(channel);
  words_.forget(channel);
}

void Courier::progress() {
  for (const Request& request : std::exchange(requests_, {})) {
    if (!request.ear->channel->closed()) listen(*request.ear);
    serve(request);
  }
  settle();
  if (handshake_.busy()) handshake_.progress();
  if (deliveries_.busy()) deliveries_.progress();
}

}  // namespace tutti::process

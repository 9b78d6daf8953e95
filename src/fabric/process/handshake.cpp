#include "fabric/process/handshake.h"

#include <algorithm>

#include "fabric/process/fabric_tags.h"
#include "fabric/process/ucx_request.h"

namespace tutti::process {

void Handshake::expect(Channel& channel) {
  listeners_.push_back({this, &channel});
  const ucp_request_param_t param = receive_param(on_greeting, &listeners_.back());
  void* request =
      ucp_tag_recv_nbx(channel.worker(), nullptr, 0, kGreetingTag, ~uint64_t{0}, &param);
  if (UCS_PTR_IS_ERR(request)) check_ucx(UCS_PTR_STATUS(request), "receive", channel.peer());
}

void Handshake::on_greeting(void* request, ucs_status_t status, const ucp_tag_recv_info_t*,
                            void* user_data) {
  auto& listener = *static_cast<Listener*>(user_data);
  if (status == UCS_OK) {
    listener.channel->set_greeted();
    ++listener.handshake->greeted_;
  }
  ucp_request_free(request);
}

void Handshake::connect(Channel& channel, const std::string& address, bool first) {
  waiting_.push_back({&channel, address});
  if (first) greet(channel);
  progress();
}

void Handshake::progress() {
  greeted_ = 0;
  for (const Address& known : std::vector<Address>(waiting_))
    if (known.channel->greeted()) greet(*known.channel);
}

void Handshake::greet(Channel& channel) {
  const auto known = std::find_if(waiting_.begin(), waiting_.end(), [&](const Address& candidate) {
    return candidate.channel == &channel;
  });
  if (known == waiting_.end()) return;
  channel.connect(known->address);
  waiting_.erase(known);
  if (!channel.connected()) return;
  send_notice(channel.endpoint(), kGreetingTag);
  words_.say_kept();
}

void Handshake::forget(const Channel& channel) {
  std::erase_if(waiting_, [&](const Address& known) { return known.channel == &channel; });
}

}  // namespace tutti::process

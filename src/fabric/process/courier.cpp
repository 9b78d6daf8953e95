#include "fabric/process/courier.h"

#include <algorithm>
#include <utility>

#include "fabric/process/courier_parts.h"
#include "fabric/process/ucx_request.h"

namespace tutti::process {

Courier::Courier(End end, MatchAgain match_again)
    : end_(std::move(end)), match_again_(std::move(match_again)) {}

Courier::~Courier() = default;

void Courier::open(Channel& channel) {
  ears_.push_back({this, &channel, 0});
  listen(ears_.back());
  const ucp_request_param_t param = receive_param(on_greeting, &ears_.back());
  void* request =
      ucp_tag_recv_nbx(channel.worker(), nullptr, 0, kGreetingTag, ~uint64_t{0}, &param);
  if (UCS_PTR_IS_ERR(request)) check_ucx(UCS_PTR_STATUS(request), "receive", channel.peer());
}

void Courier::on_greeting(void* request, ucs_status_t status, const ucp_tag_recv_info_t*,
                          void* user_data) {
  auto& ear = *static_cast<Ear*>(user_data);
  if (status == UCS_OK) {
    ear.channel->set_greeted();
    ++ear.courier->greeted_;
  }
  ucp_request_free(request);
}

void Courier::connect(Channel& channel, const std::string& address, bool first) {
  waiting_.push_back({&channel, address});
  if (first) greet(channel);
  answer_greetings();
}

void Courier::answer_greetings() {
  greeted_ = 0;
  for (const Address& known : std::vector<Address>(waiting_))
    if (known.channel->greeted()) greet(*known.channel);
}

void Courier::greet(Channel& channel) {
  const auto known = std::find_if(waiting_.begin(), waiting_.end(), [&](const Address& candidate) {
    return candidate.channel == &channel;
  });
  if (known == waiting_.end()) return;
  channel.connect(known->address);
  waiting_.erase(known);
  if (!channel.connected()) return;
  const ucp_request_param_t param = send_param(on_word_sent, nullptr);
  ucp_tag_send_nbx(channel.endpoint(), nullptr, 0, kGreetingTag, &param);
  for (const Word& word : std::exchange(unsent_, {})) say(*word.channel, word.tag, word.value);
}

void Courier::say(Channel& channel, uint64_t tag, uint64_t value) {
  if (channel.closed()) return;
  if (!channel.connected()) {
    unsent_.push_back({&channel, tag, value});
    return;
  }
  auto word = std::make_unique<uint64_t>(value);
  const ucp_request_param_t param = send_param(on_word_sent, word.get());
  void* request = ucp_tag_send_nbx(channel.endpoint(), word.get(), sizeof value, tag, &param);
  // A broken endpoint refuses; the launcher will say that its peer is lost.
  if (UCS_PTR_IS_PTR(request)) static_cast<void>(word.release());  // to on_word_sent
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks)

void Courier::on_word_sent(void* request, ucs_status_t, void* user_data) {
  delete static_cast<uint64_t*>(user_data);
  ucp_request_free(request);
}

void Courier::forget(Channel& channel) {
  const auto of_channel = [&](const auto& entry) { return entry->channel == &channel; };
  for (Parcel* parcel : parcels_)
    if (of_channel(parcel)) parcel->operation = nullptr;
  for (const auto& delivery : deliveries_) {
    if (!of_channel(delivery)) continue;
    if (!delivery->under_way.empty()) channel.abandon();
    for (Piece* piece : delivery->under_way) piece->delivery = nullptr;
  }
  for (auto& haul : hauls_) {
    if (!of_channel(haul)) continue;
    if (haul->request) ucp_request_cancel(channel.worker(), haul->request);
    if (haul->request) {
      channel.abandon();
      static_cast<void>(haul.release());  // UCX may still point to it
    }
  }
  std::erase_if(arrived_, [&](const Haul* haul) { return haul->channel == &channel; });
  std::erase_if(hauls_, [&](const auto& haul) { return !haul || of_channel(haul); });
  std::erase_if(deliveries_, of_channel);
  std::erase_if(requests_, [&](const Request& request) { return request.channel == &channel; });
  std::erase_if(waiting_, [&](const Address& known) { return known.channel == &channel; });
  std::erase_if(unsent_, [&](const Word& word) { return word.channel == &channel; });
}

void Courier::progress() {
  for (const Request& request : std::exchange(requests_, {})) {
    const auto ear = std::find_if(ears_.begin(), ears_.end(), [&](const Ear& candidate) {
      return candidate.channel == request.channel;
    });
    if (!request.channel->closed()) listen(*ear);
    serve(request);
  }
  settle();
  if (greeted_ != 0) answer_greetings();
  if (finished_ != 0) go_on();
}

void Courier::settle() {
  while (!arrived_.empty())
    for (Haul* haul : std::exchange(arrived_, {}))
      if (take(*haul)) std::erase_if(hauls_, [&](const auto& h) { return h.get() == haul; });
}

}  // namespace tutti::process

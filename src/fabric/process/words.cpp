#include "fabric/process/words.h"

#include <memory>
#include <utility>

#include "fabric/process/ucx_request.h"

namespace tutti::process {

void Words::say(Channel& channel, uint64_t tag, uint64_t value) {
  if (channel.closed()) return;
  if (!channel.connected()) {
    kept_.push_back({&channel, tag, value});
    return;
  }
  auto word = std::make_unique<uint64_t>(value);
  const ucp_request_param_t param = send_param(on_word_sent, word.get());
  void* request = ucp_tag_send_nbx(channel.endpoint(), word.get(), sizeof value, tag, &param);
  // A broken endpoint refuses; the launcher will say that its peer is lost.
  if (UCS_PTR_IS_PTR(request)) static_cast<void>(word.release());  // to on_word_sent
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks)

void Words::on_word_sent(void* request, ucs_status_t, void* user_data) {
  delete static_cast<uint64_t*>(user_data);
  ucp_request_free(request);
}

void Words::say_kept() {
  for (const Word& word : std::exchange(kept_, {})) say(*word.channel, word.tag, word.value);
}

void Words::forget(const Channel& channel) {
  std::erase_if(kept_, [&](const Word& word) { return word.channel == &channel; });
}

}  // namespace tutti::process

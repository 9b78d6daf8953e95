#include "fabric/process/hauls.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "fabric/process/courier_protocol.h"
#include "fabric/process/ucx_request.h"

namespace tutti::process {

struct Hauls::Haul {
  Hauls* owner = nullptr;
  Channel* channel = nullptr;
  Operation* operation = nullptr;  // null: cancelled, what comes is dropped
  uint64_t notice = 0;
  uint64_t room = 0;
  uint64_t size = kNone;
  size_t moved = 0;
  std::vector<std::byte> piece;
  void* request = nullptr;
  uint64_t size_word = 0;
  size_t came = 0;  // bytes, just now
  ucs_status_t status = UCS_OK;
};

Hauls::Hauls(Words& words, MatchAgain match_again)
    : words_(words), match_again_(std::move(match_again)) {}

Hauls::~Hauls() = default;

void Hauls::pull(Operation& operation, Channel& channel) {
  if (channel.closed()) return match_again_(operation);
  operation.phase = Operation::Phase::kPulling;
  auto haul = std::make_unique<Haul>();
  haul->owner = this;
  haul->channel = &channel;
  haul->operation = &operation;
  haul->notice = operation.notice;
  haul->room = operation.bytes;
  words_.say(channel, kRequestTag | haul->notice, haul->room);
  expect(*haul);
  hauls_.push_back(std::move(haul));
}

void Hauls::expect(Haul& haul) {
  const bool size = haul.size == kNone;
  // Never more than is left of what was announced, which fits: UCX truncates a piece beyond that.
  if (!size) haul.piece.resize(std::min<uint64_t>(kPieceBytes, haul.size - haul.moved));
  void* into = size ? static_cast<void*>(&haul.size_word) : haul.piece.data();
  const size_t bytes = size ? sizeof haul.size_word : haul.piece.size();
  const uint64_t tag = (size ? kSizeTag : kPieceTag) | haul.notice;
  const ucp_request_param_t param = receive_param(on_arrival, &haul);
  const size_t arrived = arrived_.size();
  void* request = ucp_tag_recv_nbx(haul.channel->worker(), into, bytes, tag, ~uint64_t{0}, &param);
  if (UCS_PTR_IS_ERR(request)) check_ucx(UCS_PTR_STATUS(request), "receive", haul.channel->peer());
  if (arrived_.size() == arrived) haul.request = request;
}

void Hauls::on_arrival(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                       void* user_data) {
  auto& haul = *static_cast<Haul*>(user_data);
  haul.request = nullptr;
  haul.came = info->length;
  haul.status = status;
  ucp_request_free(request);
  haul.owner->arrived_.push_back(&haul);
}

bool Hauls::take(Haul& haul) {
  Operation* operation = haul.operation;
  if (haul.status == UCS_ERR_MESSAGE_TRUNCATED) {
    // More than it had announced: who sends that speaks another language, and will not stop.
    if (operation) operation->end(State::kTruncated, haul.moved + haul.came);
    return true;
  }
  if (haul.status != UCS_OK) return false;  // the launcher will say that its sender is lost
  if (haul.size == kNone) {
    haul.size = haul.came == sizeof haul.size_word ? haul.size_word : kNone;
    if (haul.size == kNone) {
      if (operation) match_again_(*operation);
      return true;
    }
    if (haul.size > haul.room) {
      if (operation) operation->end(State::kTruncated, haul.size);
      return true;
    }
    expect(haul);
    return false;
  }
  if (haul.came == 0) {
    if (operation) match_again_(*operation);
    return true;
  }
  if (operation) std::memcpy(operation->data + haul.moved, haul.piece.data(), haul.came);
  haul.moved += haul.came;
  if (haul.moved >= haul.size) {
    if (operation) operation->end(State::kDone, haul.size);
    return true;
  }
  expect(haul);
  return false;
}

void Hauls::detach(Operation& operation) {
  for (const auto& haul : hauls_)
    if (haul->operation == &operation) {
      haul->operation = nullptr;
      words_.say(*haul->channel, kRequestTag | haul->notice, kEnough);
    }
}

void Hauls::progress() {
  while (!arrived_.empty())
    for (Haul* haul : std::exchange(arrived_, {}))
      if (take(*haul)) std::erase_if(hauls_, [&](const auto& h) { return h.get() == haul; });
}

void Hauls::forget(Channel& channel) {
  const auto of_channel = [&](const auto& haul) { return haul->channel == &channel; };
  for (auto& haul : hauls_) {
    if (!of_channel(haul)) continue;
    if (haul->request) ucp_request_cancel(channel.worker(), haul->request);
    if (haul->request) {
      channel.abandon();
      static_cast<void>(haul.release());  // UCX may still point to it
    }
  }
  std::erase_if(arrived_, of_channel);
  std::erase_if(hauls_, [&](const auto& haul) { return !haul || of_channel(haul); });
}

}  // namespace tutti::process

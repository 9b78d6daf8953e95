// The courier's side of a receiver.
#include <algorithm>
#include <cstring>

#include "fabric/process/courier_parts.h"
#include "fabric/process/ucx_request.h"

namespace tutti::process {

void Courier::pull(Operation& operation, Channel& channel) {
  if (channel.closed()) return match_again_(operation);
  operation.phase = Operation::Phase::kPulling;
  auto haul = std::make_unique<Haul>();
  haul->courier = this;
  haul->channel = &channel;
  haul->operation = &operation;
  haul->notice = operation.notice;
  haul->room = operation.bytes;
  say(channel, kRequestTag | haul->notice, haul->room);
  expect(*haul);
  hauls_.push_back(std::move(haul));
}

void Courier::expect(Haul& haul) {
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

void Courier::on_arrival(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                         void* user_data) {
  auto& haul = *static_cast<Haul*>(user_data);
  haul.request = nullptr;
  haul.came = info->length;
  haul.status = status;
  ucp_request_free(request);
  haul.courier->arrived_.push_back(&haul);
}

bool Courier::take(Haul& haul) {
  Operation* operation = haul.operation;
  if (haul.status == UCS_ERR_MESSAGE_TRUNCATED) {
    // More than it had announced: who sends that speaks another language, and will not stop.
    if (operation) end_(*operation, State::kTruncated, haul.moved + haul.came);
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
      if (operation) end_(*operation, State::kTruncated, haul.size);
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
    if (operation) end_(*operation, State::kDone, haul.size);
    return true;
  }
  expect(haul);
  return false;
}

void Courier::detach(Operation& operation) {
  for (const auto& haul : hauls_)
    if (haul->operation == &operation) {
      haul->operation = nullptr;
      say(*haul->channel, kRequestTag | haul->notice, kEnough);
    }
}

}  // namespace tutti::process

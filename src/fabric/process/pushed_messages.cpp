#include "fabric/process/pushed_messages.h"

#include <memory>

#include "fabric/process/ucx_request.h"

namespace tutti::process {
namespace {

// Messages that are sent without being asked for: one, and all to one peer.
constexpr size_t kPushBytes = size_t{1} << 20;
constexpr size_t kMostPushed = size_t{8} << 20;
constexpr size_t kMostUnderWay = size_t{512} << 10;

}  // namespace

// A copy, so that its operation can end before it has gone.
struct PushedMessages::Parcel {
  PushedMessages* owner;
  Channel* channel;
  Operation* operation;
  std::vector<std::byte> bytes;
};

bool PushedMessages::may_push(size_t bytes, const Channel& channel) {
  return bytes <= kPushBytes && channel.pushed() + bytes <= kMostPushed;
}

bool PushedMessages::must_wait(size_t bytes, const Channel& channel) const {
  size_t under_way = 0;
  for (const Parcel* parcel : parcels_)
    if (parcel->channel == &channel) under_way += parcel->bytes.size();
  return under_way > 0 && under_way + bytes > kMostUnderWay && may_push(bytes, channel);
}

bool PushedMessages::push(Operation& operation, Channel& channel) {
  if (!may_push(operation.bytes, channel)) return false;
  auto parcel = std::make_unique<Parcel>(Parcel{this, &channel, &operation, {}});
  parcel->bytes.assign(operation.data, operation.data + operation.bytes);
  const ucp_request_param_t param = send_param(on_pushed, parcel.get());
  void* request = ucp_tag_send_nbx(channel.endpoint(), parcel->bytes.data(), operation.bytes,
                                   kPushFlag | operation.tag.bits(), &param);
  // A broken endpoint refuses; the launcher will say that its peer is lost.
  if (UCS_PTR_IS_ERR(request)) return false;
  channel.add_pushed(static_cast<int64_t>(operation.bytes));
  if (request == nullptr)
    operation.end(State::kDone, operation.bytes);
  else
    parcels_.push_back(parcel.release());
  return true;
}

void PushedMessages::on_pushed(void* request, ucs_status_t, void* user_data) {
  const std::unique_ptr<Parcel> parcel(static_cast<Parcel*>(user_data));
  std::erase(parcel->owner->parcels_, parcel.get());
  if (Operation* operation = parcel->operation) operation->end(State::kDone, operation->bytes);
  ucp_request_free(request);
}

bool PushedMessages::withdraw(Operation& operation) {
  for (Parcel* parcel : parcels_)
    if (parcel->operation == &operation) {
      parcel->operation = nullptr;
      operation.end(State::kDone, operation.bytes);
      return true;
    }
  return false;
}

void PushedMessages::forget(const Channel& channel) {
  for (Parcel* parcel : parcels_)
    if (parcel->channel == &channel) parcel->operation = nullptr;
}

}  // namespace tutti::process

// The courier's side of a sender.
#include <algorithm>

#include "fabric/process/courier_parts.h"
#include "fabric/process/ucx_request.h"

namespace tutti::process {

bool Courier::may_push(size_t bytes, const Channel& channel) {
  return bytes <= kPushBytes && channel.pushed() + bytes <= kMostPushed;
}

bool Courier::must_wait(size_t bytes, const Channel& channel) const {
  size_t under_way = 0;
  for (const Parcel* parcel : parcels_)
    if (parcel->channel == &channel) under_way += parcel->bytes.size();
  return under_way > 0 && under_way + bytes > kMostUnderWay && may_push(bytes, channel);
}

bool Courier::push(Operation& operation, Channel& channel) {
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
    end_(operation, State::kDone, operation.bytes);
  else
    parcels_.push_back(parcel.release());
  return true;
}

void Courier::on_pushed(void* request, ucs_status_t, void* user_data) {
  const std::unique_ptr<Parcel> parcel(static_cast<Parcel*>(user_data));
  std::erase(parcel->courier->parcels_, parcel.get());
  if (Operation* operation = parcel->operation)
    parcel->courier->end_(*operation, State::kDone, operation->bytes);
  ucp_request_free(request);
}

void Courier::acknowledge(Channel& channel, size_t bytes) { say(channel, kRequestTag, bytes); }

void Courier::offer(Operation& operation, Channel& channel) {
  serial_ = (serial_ + 1) % kSerials;
  operation.notice = kNoticeFlag | serial_ << kSerialShift;
  auto delivery = std::make_unique<Delivery>();
  delivery->courier = this;
  delivery->channel = &channel;
  delivery->operation = &operation;
  delivery->notice = operation.notice;
  deliveries_.push_back(std::move(delivery));
}

Courier::Delivery* Courier::find(const Channel& channel, uint64_t notice) {
  for (const auto& delivery : deliveries_)
    if (delivery->channel == &channel && delivery->notice == notice) return delivery.get();
  return nullptr;
}

Courier::Delivery* Courier::find(const Operation& operation) {
  for (const auto& delivery : deliveries_)
    if (delivery->operation == &operation) return delivery.get();
  return nullptr;
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
    ear.courier->requests_.push_back({ear.channel, info->sender_tag & ~kTagMask, ear.word});
  ucp_request_free(request);
}

void Courier::serve(const Request& request) {
  if (request.channel->closed()) return;
  Delivery* delivery = find(*request.channel, request.notice);
  if (request.notice == 0) {  // an acknowledgement
    request.channel->add_pushed(-static_cast<int64_t>(request.word));
  } else if (request.word == kEnough) {
    if (!delivery || delivery->stopped || delivery->moved == delivery->operation->bytes) return;
    delivery->stopped = true;
    send_piece(*delivery, 0);
  } else if (!delivery || delivery->claimed) {
    say(*request.channel, kSizeTag | request.notice, kNone);
  } else {
    delivery->claimed = true;
    say(*request.channel, kSizeTag | request.notice, delivery->operation->bytes);
    if (delivery->operation->bytes > request.word) {
      delivery->stopped = true;  // it does not fit; for us it has been received
      ++finished_;
      return;
    }
    send_pieces(*delivery);
  }
}

void Courier::send_pieces(Delivery& delivery) {
  const size_t bytes = delivery.operation->bytes;
  while (delivery.under_way.size() < kPiecesUnderWay && delivery.moved < bytes && !delivery.broken)
    send_piece(delivery, std::min(bytes - delivery.moved, kPieceBytes));
}

void Courier::send_piece(Delivery& delivery, size_t bytes) {
  const std::byte* data = delivery.operation->data + delivery.moved;
  delivery.moved += bytes;
  auto piece = std::make_unique<Piece>();
  piece->delivery = &delivery;
  void* request =
      piece->loan.send(delivery.channel->endpoint(), data, bytes, kPieceTag | delivery.notice,
                       send_param(on_piece_sent, piece.get()));
  if (UCS_PTR_IS_ERR(request))
    delivery.broken = true;
  else if (request == nullptr)
    ++finished_;
  else
    delivery.under_way.push_back(piece.release());
}

void Courier::on_piece_sent(void* request, ucs_status_t status, void* user_data) {
  const std::unique_ptr<Piece> piece(static_cast<Piece*>(user_data));
  ucp_request_free(request);
  if (!piece->delivery) return;
  Delivery& delivery = *piece->delivery;
  if (status != UCS_OK) delivery.broken = true;
  std::erase(delivery.under_way, piece.get());
  ++delivery.courier->finished_;
}

void Courier::go_on() {
  finished_ = 0;
  for (size_t i = 0; i < deliveries_.size();) {
    Delivery& delivery = *deliveries_[i];
    if (delivery.claimed && !delivery.stopped) send_pieces(delivery);
    if (!delivery.claimed || delivery.broken || !delivery.over()) {
      ++i;
      continue;
    }
    Operation& operation = *delivery.operation;
    deliveries_.erase(deliveries_.begin() + static_cast<std::ptrdiff_t>(i));
    end_(operation, State::kDone, operation.bytes);
  }
}

bool Courier::withdraw(Operation& operation) {
  for (Parcel* parcel : parcels_)
    if (parcel->operation == &operation) {  // too late to call it back, but the buffer is free
      parcel->operation = nullptr;
      end_(operation, State::kDone, operation.bytes);
      return false;
    }
  Delivery* delivery = find(operation);
  if (!delivery) return true;
  // All of it is in UCX's hands: then it was sent.
  const bool sent = delivery->claimed && !delivery->broken &&
                    (delivery->stopped || delivery->moved == operation.bytes);
  if (delivery->claimed && !delivery->broken && !sent) send_piece(*delivery, 0);
  drop(*delivery);
  if (sent) end_(operation, State::kDone, operation.bytes);
  return !sent;
}

// What is under way goes on without the caller's memory.
void Courier::drop(const Delivery& delivery) {
  for (Piece* piece : delivery.under_way) {
    piece->loan.recall_send();
    piece->delivery = nullptr;
  }
  std::erase_if(deliveries_, [&](const auto& other) { return other.get() == &delivery; });
}

}  // namespace tutti::process

#include "fabric/process/deliveries.h"

#include <algorithm>

#include "fabric/process/courier_protocol.h"
#include "fabric/process/loan.h"
#include "fabric/process/ucx_request.h"

namespace tutti::process {
namespace {

// Few, so that what else is to be sent does not wait long.
constexpr size_t kPiecesUnderWay = 2;

}  // namespace

struct Deliveries::Delivery {
  Deliveries* owner = nullptr;
  Channel* channel = nullptr;
  Operation* operation = nullptr;
  uint64_t notice = 0;
  size_t moved = 0;
  std::vector<Piece*> under_way;  // in UCX's hands, whose callback deletes them
  bool claimed = false;
  bool stopped = false;  // no further pieces: the receiver has had enough
  bool broken = false;

  bool over() const { return under_way.empty() && (stopped || moved == operation->bytes); }
};

struct Deliveries::Piece {
  Delivery* delivery = nullptr;  // null: called back, or gone with its channel
  Loan loan;
};

Deliveries::Deliveries(Words& words) : words_(words) {}

Deliveries::~Deliveries() = default;

void Deliveries::offer(Operation& operation, Channel& channel) {
  serial_ = (serial_ + 1) % kSerials;
  operation.notice = kNoticeFlag | serial_ << kSerialShift;
  auto delivery = std::make_unique<Delivery>();
  delivery->owner = this;
  delivery->channel = &channel;
  delivery->operation = &operation;
  delivery->notice = operation.notice;
  deliveries_.push_back(std::move(delivery));
}

void Deliveries::serve(Channel& channel, uint64_t notice, uint64_t word) {
  const auto found = std::find_if(deliveries_.begin(), deliveries_.end(), [&](const auto& other) {
    return other->channel == &channel && other->notice == notice;
  });
  Delivery* delivery = found == deliveries_.end() ? nullptr : found->get();
  if (word == kEnough) {
    if (!delivery || delivery->stopped || delivery->moved == delivery->operation->bytes) return;
    delivery->stopped = true;
    send_piece(*delivery, 0);
  } else if (!delivery || delivery->claimed) {
    words_.say(channel, kSizeTag | notice, kNone);
  } else {
    delivery->claimed = true;
    words_.say(channel, kSizeTag | notice, delivery->operation->bytes);
    if (delivery->operation->bytes > word) {
      delivery->stopped = true;  // it does not fit; for us it has been received
      ++finished_;
      return;
    }
    send_pieces(*delivery);
  }
}

void Deliveries::send_pieces(Delivery& delivery) {
  const size_t bytes = delivery.operation->bytes;
  while (delivery.under_way.size() < kPiecesUnderWay && delivery.moved < bytes && !delivery.broken)
    send_piece(delivery, std::min(bytes - delivery.moved, kPieceBytes));
}

void Deliveries::send_piece(Delivery& delivery, size_t bytes) {
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

void Deliveries::on_piece_sent(void* request, ucs_status_t status, void* user_data) {
  const std::unique_ptr<Piece> piece(static_cast<Piece*>(user_data));
  ucp_request_free(request);
  if (!piece->delivery) return;
  Delivery& delivery = *piece->delivery;
  if (status != UCS_OK) delivery.broken = true;
  std::erase(delivery.under_way, piece.get());
  ++delivery.owner->finished_;
}

void Deliveries::progress() {
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
    operation.end(State::kDone, operation.bytes);
  }
}

bool Deliveries::withdraw(Operation& operation) {
  const auto found = std::find_if(deliveries_.begin(), deliveries_.end(), [&](const auto& other) {
    return other->operation == &operation;
  });
  if (found == deliveries_.end()) return true;
  Delivery& delivery = **found;
  // All of it is in UCX's hands: then it was sent.
  const bool sent = delivery.claimed && !delivery.broken &&
                    (delivery.stopped || delivery.moved == operation.bytes);
  if (delivery.claimed && !delivery.broken && !sent) send_piece(delivery, 0);
  drop(delivery);
  if (sent) operation.end(State::kDone, operation.bytes);
  return !sent;
}

// Transfers under way go on without the caller's memory.
void Deliveries::drop(const Delivery& delivery) {
  for (Piece* piece : delivery.under_way) {
    piece->loan.recall_send();
    piece->delivery = nullptr;
  }
  std::erase_if(deliveries_, [&](const auto& other) { return other.get() == &delivery; });
}

void Deliveries::forget(Channel& channel) {
  std::erase_if(deliveries_, [&](const auto& delivery) {
    if (delivery->channel != &channel) return false;
    if (!delivery->under_way.empty()) channel.abandon();
    for (Piece* piece : delivery->under_way) piece->delivery = nullptr;
    return true;
  });
}

}  // namespace tutti::process

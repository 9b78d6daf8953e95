#include "fabric/process/courier.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "fabric/process/ucx_request.h"

namespace tutti::process {
namespace {

constexpr uint64_t kRequestTag = Tag(Purpose::kFabric, 2).bits();
constexpr uint64_t kSizeTag = Tag(Purpose::kFabric, 3).bits();
constexpr uint64_t kPieceTag = Tag(Purpose::kFabric, 4).bits();
constexpr uint64_t kGreetingTag = Tag(Purpose::kFabric, 5).bits();

// Few and small, so that what else is to be sent does not wait long.
constexpr size_t kPieceBytes = 2 * kEagerBytes;
constexpr int kPiecesUnderWay = 2;
// What is sent without being asked for: one message, and all to one peer.
constexpr size_t kPushBytes = size_t{2} << 20;
constexpr size_t kMostPushed = size_t{8} << 20;

// Words of a request beside the room in a buffer, and of a size.
constexpr uint64_t kEnough = ~uint64_t{0};
constexpr uint64_t kNone = ~uint64_t{0};

constexpr int kSerialShift = 40;
constexpr uint64_t kSerials = uint64_t{1} << (63 - kSerialShift);

}  // namespace

struct Courier::Delivery {
  Courier* courier = nullptr;
  Channel* channel = nullptr;
  Operation* operation = nullptr;
  uint64_t notice = 0;
  size_t moved = 0;
  int under_way = 0;  // pieces in UCX's hands
  bool claimed = false;
  bool stopped = false;  // no further pieces: called back, or the receiver has had enough
  bool called_back = false;
  bool broken = false;

  bool over() const { return under_way == 0 && (stopped || moved == operation->bytes); }
  void change_under_way(int by) {
    under_way += by;
    operation->in_ucx = under_way > 0;
    if (by < 0 && !broken) ++courier->finished_;
  }
};

struct Courier::Haul {
  Courier* courier = nullptr;
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
  bool failed = false;
};

struct Courier::Ear {
  Courier* courier = nullptr;
  Channel* channel = nullptr;
  uint64_t word = 0;
};

Courier::Courier(End end, MatchAgain match_again)
    : end_(std::move(end)), match_again_(std::move(match_again)) {}

Courier::~Courier() = default;

// --- what both sides say

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
  if (UCS_PTR_IS_PTR(request)) word.release();
}

void Courier::on_word_sent(void* request, ucs_status_t, void* user_data) {
  delete static_cast<uint64_t*>(user_data);
  ucp_request_free(request);
}

// --- the sender

bool Courier::push(Operation& operation, Channel& channel) {
  if (operation.bytes > kPushBytes || channel.pushed() + operation.bytes > kMostPushed)
    return false;
  auto copy = std::make_unique_for_overwrite<std::byte[]>(operation.bytes);
  std::memcpy(copy.get(), operation.data, operation.bytes);
  const ucp_request_param_t param = send_param(on_pushed, copy.get());
  void* request = ucp_tag_send_nbx(channel.endpoint(), copy.get(), operation.bytes,
                                   kPushFlag | operation.tag.bits(), &param);
  // A broken endpoint refuses; the launcher will say that its peer is lost.
  if (UCS_PTR_IS_ERR(request)) return false;
  if (request != nullptr) copy.release();
  channel.add_pushed(static_cast<int64_t>(operation.bytes));
  end_(operation, State::kDone, operation.bytes);
  return true;
}

void Courier::on_pushed(void* request, ucs_status_t, void* user_data) {
  delete[] static_cast<std::byte*>(user_data);
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
  while (delivery.under_way < kPiecesUnderWay && delivery.moved < bytes && !delivery.broken)
    send_piece(delivery, std::min(bytes - delivery.moved, kPieceBytes));
}

void Courier::send_piece(Delivery& delivery, size_t bytes) {
  const std::byte* data = delivery.operation->data + delivery.moved;
  delivery.moved += bytes;
  delivery.change_under_way(+1);
  const ucp_request_param_t param = send_param(on_piece_sent, &delivery);
  void* request = ucp_tag_send_nbx(delivery.channel->endpoint(), data, bytes,
                                   kPieceTag | delivery.notice, &param);
  if (UCS_PTR_IS_ERR(request)) delivery.broken = true;
  if (!UCS_PTR_IS_PTR(request)) delivery.change_under_way(-1);
}

void Courier::on_piece_sent(void* request, ucs_status_t status, void* user_data) {
  auto& delivery = *static_cast<Delivery*>(user_data);
  if (status != UCS_OK) delivery.broken = true;
  ucp_request_free(request);
  delivery.change_under_way(-1);
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
    const bool called_back = delivery.called_back;
    deliveries_.erase(deliveries_.begin() + static_cast<std::ptrdiff_t>(i));
    if (!called_back) end_(operation, State::kDone, operation.bytes);
  }
}

bool Courier::withdraw(Operation& operation) {
  Delivery* delivery = find(operation);
  if (!delivery) return true;
  if (delivery->claimed && !delivery->broken) {
    // All of it has gone, or will have in a moment: then it was sent.
    const bool complete = delivery->stopped || delivery->moved == operation.bytes;
    if (!complete) {
      delivery->stopped = delivery->called_back = true;
      send_piece(*delivery, 0);
    }
    if (!delivery->called_back) return false;
  }
  if (delivery->under_way > 0) return false;
  std::erase_if(deliveries_, [&](const auto& other) { return other.get() == delivery; });
  return true;
}

// --- the receiver

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
  if (!size) haul.piece.resize(std::min<uint64_t>(kPieceBytes, haul.size));
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
  haul.came = status == UCS_OK ? info->length : 0;
  haul.failed = status != UCS_OK;
  ucp_request_free(request);
  haul.courier->arrived_.push_back(&haul);
}

bool Courier::take(Haul& haul) {
  Operation* operation = haul.operation;
  if (haul.failed) return false;  // the launcher will say why, or we have cancelled it ourselves
  if (haul.size == kNone) {
    haul.size = haul.size_word;
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

// ---

void Courier::forget(Channel& channel) {
  const auto of_channel = [&](const auto& entry) { return entry->channel == &channel; };
  for (const auto& delivery : deliveries_)
    if (of_channel(delivery) && delivery->under_way > 0) channel.abandon();
  for (auto& haul : hauls_) {
    if (!of_channel(haul)) continue;
    if (haul->request) ucp_request_cancel(channel.worker(), haul->request);
    if (haul->request) {
      channel.abandon();
      haul.release();  // UCX may still point to it
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

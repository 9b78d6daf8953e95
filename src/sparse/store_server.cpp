// One loop over one receive from anybody and over the keys and rows that are on their way; nothing
// in it waits for a single worker.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "sparse/store.h"

namespace tutti {
namespace {

// How soon a lost worker is noticed that nobody else says anything about.
constexpr double kLookEvery_s = 0.1;

template <class T>
std::span<T> sized(Buffer<T>& buffer, size_t size) {
  if (buffer.size() < size) buffer = Buffer<T>(size);
  return buffer.span().first(size);
}

}  // namespace

StoreServer::StoreServer(Node& node, const StoreLayout& layout, StoreSettings settings)
    : node_(node),
      layout_(layout),
      settings_(std::move(settings)),
      table_(layout.width, settings_.state, settings_.initial),
      clients_(static_cast<size_t>(layout.first_server)),
      incoming_(kEagerBytes),
      current_(kEagerBytes) {}

void StoreServer::run() {
  handles_.emplace_back();
  part_of_.emplace_back();
  listen();
  while (!over()) {
    wait_for_news();
    look_at_members();
  }
}

bool StoreServer::over() const {
  return std::none_of(clients_.begin(), clients_.end(),
                      [](const Client& client) { return client.present; });
}

void StoreServer::listen() {
  handles_[0] = node_.endpoint().receive(kAnyRank, store_request_tag(), incoming_.span());
}

void StoreServer::wait_for_news() {
  const auto [index, completion] = node_.endpoint().wait_any(handles_, kLookEvery_s);
  if (completion.state == State::kTimedOut) {
    silent_s_ += kLookEvery_s;
    if (silent_s_ > node_.timeout_s())
      throw FabricError(FabricError::Kind::kTimedOut, kAnyRank,
                        fmt::format("no worker sent anything for {} s", node_.timeout_s()));
    return;
  }
  silent_s_ = 0;
  if (index > 0) {
    const Part part = part_of_[index];
    handles_[index] = std::move(handles_.back());
    handles_.pop_back();
    part_of_[index] = part_of_.back();
    part_of_.pop_back();
    return part_arrived(part, completion);
  }
  std::swap(incoming_, current_);
  listen();
  if (completion.state == State::kDone || completion.state == State::kTruncated)
    begin(completion.peer, current_.span().first(std::min(completion.bytes, current_.size())));
}

void StoreServer::look_at_members() {
  while (const std::optional<MemberEvent> event = node_.membership().next_event())
    if (event->kind == MemberEvent::Kind::kLost && event->rank < layout_.first_server)
      forget(event->rank);
}

void StoreServer::begin(Rank from, std::span<std::byte> message) {
  if (from < 0 || from >= layout_.first_server) return;  // not a worker
  Client& sender = client(from);
  if (!sender.present) return;
  StoreRequest request;
  std::memcpy(&request, message.data(), std::min(sizeof(request), message.size()));
  if (sender.missing > 0 ||
      !fault_of(request, message.size(), sender.sequence + 1, layout_.width).empty())
    return refuse(from);
  sender.sequence = request.sequence;
  sender.request = request;
  if (request.flags & StoreRequest::kGoodbye) return forget(from);
  if (request.keys == 0) return execute(from, {}, {});
  if (request.flags & StoreRequest::kTogether) {
    const std::span<std::byte> follows = message.subspan(sizeof(request));
    const size_t key_bytes = request.keys * sizeof(uint64_t);
    return execute(from, values_in<uint64_t>(follows.first(key_bytes)),
                   values_in<float>(follows.subspan(key_bytes)));
  }
  expect(from, store_keys_tag(request.sequence),
         writable_bytes_of(sized(sender.keys, request.keys)));
  if (request.flags & StoreRequest::kPush)
    expect(from, store_push_tag(request.sequence),
           writable_bytes_of(sized(sender.rows, request.keys * layout_.width)));
}

void StoreServer::expect(Rank from, Tag tag, std::span<std::byte> buffer) {
  handles_.push_back(node_.endpoint().receive(from, tag, buffer));
  part_of_.push_back({from, buffer.size()});
  ++client(from).missing;
}

void StoreServer::part_arrived(const Part& part, const Completion& completion) {
  Client& sender = client(part.client);
  if (!sender.present || completion.state == State::kPeerLost) return;
  if (completion.state != State::kDone || completion.bytes != part.bytes)
    return refuse(part.client);
  if (--sender.missing > 0) return;
  const size_t count = sender.request.keys;
  const bool pushes = sender.request.flags & StoreRequest::kPush;
  execute(part.client, sender.keys.span().first(count),
          sender.rows.span().first(pushes ? count * layout_.width : 0));
}

void StoreServer::execute(Rank from, std::span<const uint64_t> keys,
                          std::span<const float> pushed) {
  Client& sender = client(from);
  const size_t count = keys.size(), width = layout_.width;
  if (!fault_of_keys(keys, 0).empty()) return refuse(from);
  sender.sending.clear();  // it asked again, so it has the last reply
  const Arithmetic arithmetic = node_.clock().arithmetic();
  const bool pushes = sender.request.flags & StoreRequest::kPush;
  double passes = 0;
  std::span<float> answer;
  if (sender.request.flags & StoreRequest::kPull) {
    answer =
        values_in<float>(sized(sender.answer, sizeof(StoreReply) + count * width * sizeof(float))
                             .subspan(sizeof(StoreReply)));
    if (!pushes) arithmetic.perform([&] { table_.read(keys, answer); });
    passes += 2;
  }
  if (pushes) {
    arithmetic.perform([&] { apply(keys, pushed, answer); });
    ++pushes_;
    passes += 3 + 2 * static_cast<double>(settings_.state) / static_cast<double>(width);
  }
  node_.clock().charge(
      {.flops = 0,
       .memory_bytes = passes * static_cast<double>(count * width * sizeof(float)) +
                       64.0 * static_cast<double>(count)});
  reply(from, StoreReply::kDone, answer.size_bytes());
}

void StoreServer::apply(std::span<const uint64_t> keys, std::span<const float> pushed,
                        std::span<float> answer) {
  const size_t width = layout_.width;
  table_.update(keys, [&](size_t i, uint32_t row) {
    const std::span<float> values = table_.values(row);
    const std::span<const float> more = pushed.subspan(i * width, width);
    if (settings_.update)
      settings_.update(keys[i], values, table_.state(row), more);
    else
      for (size_t c = 0; c < width; ++c) values[c] += more[c];
    if (!answer.empty()) std::copy(values.begin(), values.end(), answer.data() + i * width);
  });
}

// With `rows` bytes of rows, which lie in the answer already.
void StoreServer::reply(Rank to, StoreReply::State state, size_t rows) {
  Client& receiver = client(to);
  const StoreReply reply{.state = state, .sequence = receiver.sequence};
  const std::span<std::byte> message = sized(receiver.answer, sizeof(reply) + rows);
  std::memcpy(message.data(), &reply, sizeof(reply));
  const bool together = receiver.request.flags & StoreRequest::kTogether;
  const auto send = [&](Tag tag, std::span<const std::byte> bytes) {
    receiver.sending.push_back(node_.endpoint().send(to, tag, bytes));
  };
  send(store_reply_tag(receiver.sequence), together ? message : message.first(sizeof(reply)));
  if (!together && rows > 0)
    send(store_pull_tag(receiver.sequence), message.subspan(sizeof(reply)));
}

void StoreServer::refuse(Rank from) {
  ++refused_;
  reply(from, StoreReply::kRefused, 0);
  forget(from);
}

void StoreServer::forget(Rank from) {
  client(from).present = false;
  for (size_t i = handles_.size(); i-- > 1;) {
    if (part_of_[i].client != from) continue;
    handles_.erase(handles_.begin() + static_cast<std::ptrdiff_t>(i));
    part_of_.erase(part_of_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace tutti

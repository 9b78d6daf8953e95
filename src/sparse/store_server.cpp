// One loop over one receive from anybody and over the keys and rows that are on their way; nothing
// in it waits for a single worker.
#include <fmt/format.h>

#include <algorithm>

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
      clients_(static_cast<size_t>(layout.first_server)) {}

void StoreServer::run() {
  handles_.emplace_back();
  part_of_.emplace_back();
  heard_s_ = node_.clock().now();
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
  handles_[0] =
      node_.endpoint().receive(kAnyRank, store_request_tag(),
                               std::as_writable_bytes(std::span<StoreRequest>(&incoming_, 1)));
}

void StoreServer::wait_for_news() {
  const auto [index, completion] = node_.endpoint().wait_any(handles_, kLookEvery_s);
  if (completion.state == State::kTimedOut) {
    if (node_.clock().now() - heard_s_ > node_.timeout_s())
      throw FabricError(FabricError::Kind::kTimedOut, kAnyRank,
                        fmt::format("no worker sent anything for {} s", node_.timeout_s()));
    return;
  }
  heard_s_ = node_.clock().now();
  if (index > 0) {
    const Part part = part_of_[index];
    handles_[index] = std::move(handles_.back());
    handles_.pop_back();
    part_of_[index] = part_of_.back();
    part_of_.pop_back();
    return part_arrived(part, completion);
  }
  const StoreRequest request = incoming_;
  listen();
  if (completion.state == State::kDone || completion.state == State::kTruncated)
    begin(completion.peer, request, completion.bytes);
}

void StoreServer::look_at_members() {
  while (const std::optional<MemberEvent> event = node_.membership().next_event())
    if (event->kind == MemberEvent::Kind::kLost && event->rank < layout_.first_server)
      forget(event->rank);
}

void StoreServer::begin(Rank from, const StoreRequest& request, size_t bytes) {
  if (from < 0 || from >= layout_.first_server) return;  // not a worker
  Client& sender = client(from);
  if (!sender.present) return;
  if (sender.missing > 0 || !fault_of(request, bytes, sender.sequence + 1).empty())
    return refuse(from);
  sender.sequence = request.sequence;
  sender.request = request;
  if (request.flags & StoreRequest::kGoodbye) return forget(from);
  if (request.keys == 0) return execute(from);
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
  if (--sender.missing == 0) execute(part.client);
}

void StoreServer::execute(Rank from) {
  Client& sender = client(from);
  const size_t count = sender.request.keys, width = layout_.width;
  const std::span<const uint64_t> keys = sender.keys.span().first(count);
  if (!fault_of_keys(keys, 0).empty()) return refuse(from);
  sender.sending.clear();  // it asked again, so it has the last reply
  const bool arithmetic = !node_.clock().cost_only();
  const bool pushes = sender.request.flags & StoreRequest::kPush;
  double passes = 0;
  std::span<float> answer;
  if (sender.request.flags & StoreRequest::kPull) {
    answer = sized(sender.answer, count * width);
    if (arithmetic && !pushes) table_.read(keys, answer);
    passes += 2;
  }
  if (pushes) {
    if (arithmetic) apply(keys, sender.rows.span().first(count * width), answer);
    ++pushes_;
    passes += 3 + 2 * static_cast<double>(settings_.state) / static_cast<double>(width);
  }
  node_.clock().charge(
      {.flops = 0,
       .memory_bytes = passes * static_cast<double>(count * width * sizeof(float)) +
                       64.0 * static_cast<double>(count)});
  reply(from, StoreReply::kDone, answer);
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

void StoreServer::reply(Rank to, StoreReply::State state, std::span<const float> rows) {
  Client& receiver = client(to);
  receiver.reply = {.state = state, .sequence = receiver.sequence};
  receiver.sending.push_back(
      node_.endpoint().send(to, store_reply_tag(receiver.sequence),
                            std::as_bytes(std::span<const StoreReply>(&receiver.reply, 1))));
  if (!rows.empty())
    receiver.sending.push_back(
        node_.endpoint().send(to, store_pull_tag(receiver.sequence), bytes_of(rows)));
}

void StoreServer::refuse(Rank from) {
  ++refused_;
  reply(from, StoreReply::kRefused, {});
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

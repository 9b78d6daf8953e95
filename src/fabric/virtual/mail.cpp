#include "fabric/virtual/mail.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

namespace tutti::simulation {

Mail::Mail(int nodes, bool cost_only, Transfers& transfers, std::function<void(Rank)> wake)
    : cost_only_(cost_only),
      transfers_(transfers),
      wake_(std::move(wake)),
      boxes_(static_cast<size_t>(nodes)) {}

uint64_t Mail::stream_key(const Message& message) {
  return static_cast<uint64_t>(message.from) << 40 | message.tag.bits();
}

uint64_t Mail::send(Rank from, Rank to, Tag tag, std::span<const std::byte> data) {
  const uint64_t operation = next_++;
  const uint64_t id = next_++;
  Operation& send = box(from).operations[operation];
  send.is_send = true;
  send.completion = {State::kPending, to, tag, 0};
  Message& message = messages_[id];
  message.from = from;
  message.to = to;
  message.tag = tag;
  message.bytes = data.size();
  message.eager = data.size() <= kEagerBytes;
  if (message.eager) {
    if (travels(tag) && !data.empty()) {
      message.payload = std::make_unique_for_overwrite<std::byte[]>(data.size());
      std::memcpy(message.payload.get(), data.data(), data.size());
    }
    send.completion.state = State::kDone;
    send.completion.bytes = data.size();
    transfers_.start(id, from, to, data.size());
  } else {
    message.source = data.data();
    message.send = operation;
    send.message = id;
  }
  const uint64_t key = stream_key(message);
  box(to).streams[key].coming.push_back(id);
  advance(to, key);
  return operation;
}

uint64_t Mail::fail_send(Rank from, Rank to, Tag tag) {
  const uint64_t operation = next_++;
  Operation& send = box(from).operations[operation];
  send.is_send = true;
  send.completion = {State::kPeerLost, to, tag, 0};
  return operation;
}

uint64_t Mail::receive(Rank at, Rank from, Tag tag, std::span<std::byte> buffer) {
  const uint64_t operation = next_++;
  Operation& receive = box(at).operations[operation];
  receive.completion = {State::kPending, from, tag, 0};
  receive.buffer = buffer.data();
  receive.capacity = buffer.size();
  if (const uint64_t id = box(at).matching.post(tag, from, operation)) {
    const uint64_t key = stream_key(messages_.at(id));
    take(box(at).streams[key], id, operation);
    advance(at, key);
  }
  return operation;
}

Operation* Mail::find(Rank at, uint64_t operation) {
  const auto found = box(at).operations.find(operation);
  return found == box(at).operations.end() ? nullptr : &found->second;
}

Completion Mail::cancel(Rank at, uint64_t operation) {
  auto& operations = box(at).operations;
  const auto found = operations.find(operation);
  if (found == operations.end()) return {State::kCancelled, kAnyRank, Tag(), 0};
  const Operation ended = found->second;
  operations.erase(found);
  if (ended.completion.state != State::kPending) return ended.completion;

  if (ended.is_send) {
    const Message& message = messages_.at(ended.message);
    const Rank to = message.to;
    const uint64_t receive = message.receive;
    const uint64_t key = stream_key(message);
    drop(ended.message);
    if (receive) repost(to, receive);
    advance(to, key);
  } else if (ended.message) {
    give_back(ended.message);
  } else {
    box(at).matching.withdraw_receive(ended.completion.tag, operation);
  }
  Completion completion = ended.completion;
  completion.state = State::kCancelled;
  return completion;
}

void Mail::landed(uint64_t id) {
  const auto found = messages_.find(id);
  if (found == messages_.end()) return;
  found->second.landed = true;
  advance(found->second.to, stream_key(found->second));
}

// Offers what can be offered and completes what can be completed, both in the order sent.
void Mail::advance(Rank to, uint64_t key) {
  auto& streams = box(to).streams;
  const auto found = streams.find(key);
  if (found == streams.end()) return;
  Stream& stream = found->second;
  while (!stream.coming.empty()) {
    const uint64_t id = stream.coming.front();
    Message& message = messages_.at(id);
    if (message.eager && !message.landed) break;
    stream.coming.pop_front();
    message.offered = true;
    if (const uint64_t receive = box(to).matching.arrive(message.tag, message.from, id))
      take(stream, id, receive);
  }
  while (!stream.taken.empty() && messages_.at(stream.taken.front()).landed) {
    const uint64_t id = stream.taken.front();
    stream.taken.erase(stream.taken.begin());
    complete(id);
  }
  if (stream.coming.empty() && stream.taken.empty()) streams.erase(found);
}

void Mail::take(Stream& stream, uint64_t id, uint64_t receive) {
  Message& message = messages_.at(id);
  message.receive = receive;
  box(message.to).operations.at(receive).message = id;
  stream.taken.insert(std::upper_bound(stream.taken.begin(), stream.taken.end(), id), id);
  if (!message.eager) transfers_.start(id, message.from, message.to, message.bytes);
}

void Mail::complete(uint64_t id) {
  const auto found = messages_.find(id);
  const Message& message = found->second;
  const Operation& receive = box(message.to).operations.at(message.receive);
  const std::byte* source = message.eager ? message.payload.get() : message.source;
  const size_t copied = std::min(message.bytes, receive.capacity);
  if (travels(message.tag) && copied > 0) std::memcpy(receive.buffer, source, copied);
  const bool fits = message.bytes <= receive.capacity;
  end(message.to, message.receive, fits ? State::kDone : State::kTruncated, message.from,
      message.bytes);
  if (message.send) end(message.from, message.send, State::kDone, message.to, message.bytes);
  messages_.erase(found);
}

void Mail::end(Rank at, uint64_t operation, State state, Rank peer, size_t bytes) {
  Operation* ended = find(at, operation);
  if (!ended) return;
  ended->completion.state = state;
  ended->completion.peer = peer;
  ended->completion.bytes = bytes;
  ended->message = 0;
  if (ended->watched) wake_(at);
}

// Removes a message from wherever it is. Operations on it are the caller's business.
void Mail::drop(uint64_t id) {
  const auto found = messages_.find(id);
  const Message& message = found->second;
  transfers_.cancel(id);
  if (message.offered && !message.receive) {
    box(message.to).matching.withdraw_message(message.tag, id);
  } else {
    auto& streams = box(message.to).streams;
    const auto stream = streams.find(stream_key(message));
    stream->second.coming.remove(id);
    std::erase(stream->second.taken, id);
    if (stream->second.coming.empty() && stream->second.taken.empty()) streams.erase(stream);
  }
  messages_.erase(found);
}

// The receive that had taken it was cancelled: another one may.
void Mail::give_back(uint64_t id) {
  Message& message = messages_.at(id);
  const Rank to = message.to;
  const uint64_t key = stream_key(message);
  Stream& stream = box(to).streams.at(key);
  std::erase(stream.taken, id);
  message.receive = 0;
  if (!message.eager) {
    transfers_.cancel(id);
    message.landed = false;
  }
  if (const uint64_t receive = box(to).matching.arrive_again(message.tag, message.from, id))
    take(stream, id, receive);
  advance(to, key);
}

// The message that it had taken is gone: it takes another one.
void Mail::repost(Rank at, uint64_t operation) {
  Operation& receive = box(at).operations.at(operation);
  receive.message = 0;
  const uint64_t id =
      box(at).matching.post_again(receive.completion.tag, receive.completion.peer, operation);
  if (!id) return;
  const uint64_t key = stream_key(messages_.at(id));
  take(box(at).streams[key], id, operation);
  advance(at, key);
}

// What the loss of a node does to the messages under way.
std::vector<uint64_t> Mail::messages_where(
    const std::function<bool(const Message&)>& wanted) const {
  std::vector<uint64_t> ids;
  for (const auto& [id, message] : messages_)
    if (wanted(message)) ids.push_back(id);
  std::sort(ids.begin(), ids.end());  // the map's own order is not to be relied upon
  return ids;
}

bool Mail::under_way_from(Rank rank) const {
  return std::any_of(messages_.begin(), messages_.end(), [&](const auto& entry) {
    const Message& message = entry.second;
    return message.from == rank && message.eager && !message.landed;
  });
}

void Mail::sever(const std::function<bool(Rank, Rank)>& lost) {
  const auto cut = [&](const Message& m) { return m.from != m.to && lost(m.from, m.to); };
  const auto under_way =
      messages_where([&](const Message& m) { return cut(m) && !(m.eager && m.offered); });
  for (const uint64_t id : under_way) {
    const Message& message = messages_.at(id);
    const auto [from, to, send, receive] =
        std::tuple(message.from, message.to, message.send, message.receive);
    drop(id);
    if (send) end(from, send, State::kPeerLost, to, 0);
    if (!receive) continue;
    // One that would take a message of anybody has not lost the peer that it waits for.
    if (box(to).operations.at(receive).completion.peer == kAnyRank)
      repost(to, receive);
    else
      end(to, receive, State::kPeerLost, from, 0);
  }
  // Small ones that had landed behind a lost large one.
  for (const uint64_t id : messages_where([&](const Message& m) { return cut(m) && m.receive; }))
    if (const auto found = messages_.find(id); found != messages_.end())
      advance(found->second.to, stream_key(found->second));
  for (Rank at = 0; at < static_cast<Rank>(boxes_.size()); ++at) sever_receives(at, lost);
}

void Mail::sever_receives(Rank at, const std::function<bool(Rank, Rank)>& lost) {
  std::vector<uint64_t> ids;
  for (const auto& [id, operation] : box(at).operations)
    if (!operation.is_send && operation.completion.state == State::kPending && !operation.message &&
        operation.completion.peer != kAnyRank && operation.completion.peer != at &&
        lost(operation.completion.peer, at))
      ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  for (const uint64_t id : ids) {
    const Completion pending = box(at).operations.at(id).completion;
    box(at).matching.withdraw_receive(pending.tag, id);
    end(at, id, State::kPeerLost, pending.peer, 0);
  }
}

void Mail::forget(Rank rank) {
  for (const uint64_t id : messages_where([&](const Message& m) { return m.to == rank; })) drop(id);
  box(rank) = Box();
}

void Mail::forget_from(Rank rank) {
  for (const uint64_t id : messages_where([&](const Message& m) { return m.from == rank; }))
    drop(id);
}

}  // namespace tutti::simulation

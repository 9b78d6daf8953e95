#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "fabric/exchange.h"
#include "sparse/store.h"

namespace tutti {

StoreClient::StoreClient(Node& node, const StoreLayout& layout)
    : node_(node), layout_(layout), talks_(static_cast<size_t>(layout.servers)) {}

void StoreClient::push(std::span<const uint64_t> keys, std::span<const float> rows) {
  exchange(StoreRequest::kPush, keys, rows, {});
}

void StoreClient::pull(std::span<const uint64_t> keys, std::span<float> rows) {
  exchange(StoreRequest::kPull, keys, {}, rows);
}

void StoreClient::push_pull(std::span<const uint64_t> keys, std::span<const float> pushed,
                            std::span<float> pulled) {
  exchange(StoreRequest::kPush | StoreRequest::kPull, keys, pushed, pulled);
}

void StoreClient::close() {
  ++sequence_;
  for (size_t server = 0; server < talks_.size(); ++server) {
    start(server, StoreRequest::kGoodbye, {}, {}, {});
    for (Handle& handle : talks_[server].sending) finish(node_, handle);
    talks_[server].receiving.clear();  // nobody answers a goodbye
  }
}

void StoreClient::exchange(uint32_t flags, std::span<const uint64_t> keys,
                           std::span<const float> pushed, std::span<float> pulled) {
  const size_t width = layout_.width;
  if (const std::string fault = fault_of_keys(keys, 0); !fault.empty())
    throw Error(fmt::format("the key-value store was given {}", fault));
  if ((flags & StoreRequest::kPush && pushed.size() != keys.size() * width) ||
      (flags & StoreRequest::kPull && pulled.size() != keys.size() * width))
    throw Error(
        fmt::format("the key-value store was given {} keys with {} values to push and {} "
                    "to pull; a row has {}",
                    keys.size(), pushed.size(), pulled.size(), width));
  if (keys.size() > kMostStoreKeys) {  // no server has to hold more at once
    for (size_t begin = 0; begin < keys.size(); begin += kMostStoreKeys) {
      const size_t count = std::min<size_t>(kMostStoreKeys, keys.size() - begin);
      const auto part = [&](auto rows) {
        return rows.empty() ? rows : rows.subspan(begin * width, count * width);
      };
      exchange(flags, keys.subspan(begin, count), part(pushed), part(pulled));
    }
    return;
  }
  ++sequence_;
  if (talks_.size() > 1) split_keys(keys, talks_.size(), positions_);
  for (size_t server = 0; server < talks_.size(); ++server)
    start(server, flags, keys, pushed, pulled);
  for (size_t server = 0; server < talks_.size(); ++server) finish_talk(server, pulled);
}

// Values of `width` for each key: those of the keys that a server holds, one after the other.
template <class T>
void StoreClient::take_part(size_t server, std::span<const T> all, size_t width, T* part) const {
  if (talks_.size() == 1) return void(std::copy(all.begin(), all.end(), part));
  for (const uint32_t i : positions_[server])
    part = std::copy_n(all.data() + i * width, width, part);
}

void StoreClient::put_back(size_t server, const float* part, std::span<float> all) const {
  const size_t width = layout_.width;
  if (talks_.size() == 1) return void(std::copy_n(part, all.size(), all.begin()));
  for (const uint32_t i : positions_[server]) {
    std::copy_n(part, width, all.data() + i * width);
    part += width;
  }
}

void StoreClient::start(size_t server, uint32_t flags, std::span<const uint64_t> keys,
                        std::span<const float> pushed, std::span<float> pulled) {
  Talk& talk = talks_[server];
  const size_t count = talks_.size() == 1 || keys.empty() ? keys.size() : positions_[server].size();
  talk.request = {.flags = flags, .sequence = sequence_, .keys = count};
  talk.sending.clear();
  talk.receiving.clear();
  if (may_go_together(talk.request, layout_.width)) {
    if (flags != StoreRequest::kGoodbye) talk.request.flags |= StoreRequest::kTogether;
    return start_together(server, keys, pushed);
  }
  if (talks_.size() == 1)  // nothing to sort out: straight from and to the caller's memory
    return start_apart(server, keys, pushed, pulled);
  const size_t values = count * layout_.width;
  talk.keys.resize(count);
  talk.pushed.resize(pushed.empty() ? 0 : values);
  talk.pulled.resize(pulled.empty() ? 0 : values);
  take_part(server, keys, 1, talk.keys.data());
  if (!pushed.empty()) take_part(server, pushed, layout_.width, talk.pushed.data());
  start_apart(server, talk.keys, talk.pushed, talk.pulled);
}

// One message each way.
void StoreClient::start_together(size_t server, std::span<const uint64_t> keys,
                                 std::span<const float> pushed) {
  Endpoint& endpoint = node_.endpoint();
  Talk& talk = talks_[server];
  if (talk.outgoing.size() == 0) {
    talk.outgoing = Buffer<std::byte>(kEagerBytes);
    talk.incoming = Buffer<std::byte>(kEagerBytes);
  }
  const std::span<std::byte> message = talk.outgoing.span();
  std::memcpy(message.data(), &talk.request, sizeof(StoreRequest));
  if (talk.request.keys > 0) {
    const std::span<std::byte> follows = message.subspan(sizeof(StoreRequest));
    take_part(server, keys, 1, values_in<uint64_t>(follows).data());
    if (!pushed.empty())
      take_part(server, pushed, layout_.width,
                values_in<float>(follows.subspan(talk.request.keys * sizeof(uint64_t))).data());
  }
  talk.receiving.push_back(
      endpoint.receive(rank_of(server), store_reply_tag(sequence_), talk.incoming.span()));
  talk.sending.push_back(endpoint.send(rank_of(server), store_request_tag(),
                                       message.first(bytes_together(talk.request, layout_.width))));
}

void StoreClient::start_apart(size_t server, std::span<const uint64_t> keys,
                              std::span<const float> pushed, std::span<float> pulled) {
  Endpoint& endpoint = node_.endpoint();
  Talk& talk = talks_[server];
  const Rank to = rank_of(server);
  talk.receiving.push_back(
      endpoint.receive(to, store_reply_tag(sequence_),
                       std::as_writable_bytes(std::span<StoreReply>(&talk.reply, 1))));
  if (!pulled.empty())
    talk.receiving.push_back(
        endpoint.receive(to, store_pull_tag(sequence_), writable_bytes_of(pulled)));
  talk.sending.push_back(endpoint.send(
      to, store_request_tag(), std::as_bytes(std::span<const StoreRequest>(&talk.request, 1))));
  talk.sending.push_back(endpoint.send(to, store_keys_tag(sequence_), bytes_of(keys)));
  if (!pushed.empty())
    talk.sending.push_back(endpoint.send(to, store_push_tag(sequence_), bytes_of(pushed)));
}

void StoreClient::finish_talk(size_t server, std::span<float> pulled) {
  Talk& talk = talks_[server];
  const Rank rank = rank_of(server);
  const bool together = talk.request.flags & StoreRequest::kTogether;
  const size_t bytes = finish(node_, talk.receiving.front());
  if (together) std::memcpy(&talk.reply, talk.incoming.data(), sizeof(StoreReply));
  const std::string fault =
      fault_of(talk.reply, bytes, sequence_,
               together ? reply_bytes_together(talk.request, layout_.width) : sizeof(StoreReply));
  if (!fault.empty() || talk.reply.state == StoreReply::kRefused)
    throw FabricError(FabricError::Kind::kProtocol, rank,
                      fault.empty()
                          ? fmt::format("rank {} refuses this worker", rank)
                          : fmt::format("the reply of rank {} cannot be meant: {}", rank, fault));
  for (Handle& handle : talk.sending) finish(node_, handle);
  if (pulled.empty() || talk.request.keys == 0) return;
  if (together)
    return put_back(
        server, values_in<float>(talk.incoming.span().subspan(sizeof(StoreReply))).data(), pulled);
  if (finish(node_, talk.receiving.back()) != talk.request.keys * layout_.width * sizeof(float))
    throw FabricError(FabricError::Kind::kProtocol, rank,
                      fmt::format("rank {} sent another number of rows", rank));
  if (talks_.size() > 1) put_back(server, talk.pulled.data(), pulled);
}

}  // namespace tutti

#include <fmt/format.h>

#include <algorithm>

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
  if (talks_.size() == 1) {  // nothing to sort out: straight from and to the caller's memory
    start(0, flags, keys, pushed, pulled);
    return finish_talk(0, pulled.size());
  }
  split_keys(keys, talks_.size(), positions_);
  for (size_t server = 0; server < talks_.size(); ++server) {
    Talk& talk = talks_[server];
    const std::vector<uint32_t>& mine = positions_[server];
    talk.keys.clear();
    for (const uint32_t i : mine) talk.keys.push_back(keys[i]);
    talk.pushed.resize(pushed.empty() ? 0 : mine.size() * width);
    talk.pulled.resize(pulled.empty() ? 0 : mine.size() * width);
    if (!pushed.empty())
      for (size_t i = 0; i < mine.size(); ++i)
        std::copy_n(pushed.data() + mine[i] * width, width, talk.pushed.data() + i * width);
    start(server, flags, talk.keys, talk.pushed, talk.pulled);
  }
  for (size_t server = 0; server < talks_.size(); ++server) {
    Talk& talk = talks_[server];
    finish_talk(server, talk.pulled.size());
    const std::vector<uint32_t>& mine = positions_[server];
    if (!pulled.empty())
      for (size_t i = 0; i < mine.size(); ++i)
        std::copy_n(talk.pulled.data() + i * width, width, pulled.data() + mine[i] * width);
  }
}

void StoreClient::start(size_t server, uint32_t flags, std::span<const uint64_t> keys,
                        std::span<const float> pushed, std::span<float> pulled) {
  Endpoint& endpoint = node_.endpoint();
  Talk& talk = talks_[server];
  const Rank to = rank_of(server);
  talk.request = {.flags = flags, .sequence = sequence_, .keys = keys.size()};
  talk.sending.clear();
  talk.receiving.clear();
  talk.receiving.push_back(
      endpoint.receive(to, store_reply_tag(sequence_),
                       std::as_writable_bytes(std::span<StoreReply>(&talk.reply, 1))));
  if (!pulled.empty())
    talk.receiving.push_back(
        endpoint.receive(to, store_pull_tag(sequence_), writable_bytes_of(pulled)));
  talk.sending.push_back(endpoint.send(
      to, store_request_tag(), std::as_bytes(std::span<const StoreRequest>(&talk.request, 1))));
  if (!keys.empty())
    talk.sending.push_back(endpoint.send(to, store_keys_tag(sequence_), bytes_of(keys)));
  if (!pushed.empty())
    talk.sending.push_back(endpoint.send(to, store_push_tag(sequence_), bytes_of(pushed)));
}

void StoreClient::finish_talk(size_t server, size_t pulled) {
  Talk& talk = talks_[server];
  const Rank rank = rank_of(server);
  const size_t bytes = finish(node_, talk.receiving.front());
  const std::string fault = fault_of(talk.reply, bytes, sequence_);
  if (!fault.empty() || talk.reply.state == StoreReply::kRefused)
    throw FabricError(FabricError::Kind::kProtocol, rank,
                      fault.empty()
                          ? fmt::format("rank {} refuses this worker", rank)
                          : fmt::format("the reply of rank {} cannot be meant: {}", rank, fault));
  for (Handle& handle : talk.sending) finish(node_, handle);
  if (pulled == 0) return;
  if (finish(node_, talk.receiving.back()) != pulled * sizeof(float))
    throw FabricError(FabricError::Kind::kProtocol, rank,
                      fmt::format("rank {} sent another number of rows", rank));
}

}  // namespace tutti

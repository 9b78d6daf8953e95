// Copies of worlds, and how to tell whether two of them are the same.
#include <algorithm>

#include "tests/strategies/parameter_server/shard_world.h"

namespace tutti::parameter_server {

std::unique_ptr<ShardWorld> ShardWorld::clone() {
  std::unique_ptr<ShardWorld> other(new ShardWorld);
  other->settings_ = settings_;
  other->shards_.resize(shards_.size());
  const auto copied = [&](ShardState& state) {
    const std::vector<std::byte> bytes = bytes_of(state);
    auto copy = std::make_unique<ShardState>(state.settings());
    Archive archive(bytes);
    copy->archive(archive);
    return copy;
  };
  for (size_t i = 0; i < shards_.size(); ++i) {
    Shard& from = shards_[i];
    Shard& to = other->shards_[i];
    to.state = copied(*from.state);
    to.memory = from.memory;
    to.copy.reset();
    if (from.copy) to.copy.emplace(Copy{copied(*from.copy->state), from.copy->memory});
    to.last = from.last;
    to.acknowledged = from.acknowledged;
    to.published = from.published;
    to.held = from.held;
    to.absent = from.absent;
    to.heard = from.heard;
    to.items = from.items;
    to.waiting = from.waiting;
    to.replies = from.replies;
    to.bulletins = from.bulletins;
  }
  other->workers_ = workers_;
  other->lost_server_ = lost_server_;
  other->lost_worker_ = lost_worker_;
  other->resent_ = resent_;
  other->broken_ = broken_;
  return other;
}

std::pair<uint64_t, uint64_t> ShardWorld::fingerprint() {
  Archive archive;
  const auto sorted = [&](std::vector<GradientName> names) {
    std::vector<std::pair<int, uint64_t>> pairs;
    for (const GradientName& name : names) pairs.emplace_back(name.worker, name.sequence);
    std::sort(pairs.begin(), pairs.end());
    for (auto& [worker, sequence] : pairs) archive(worker, sequence);
  };
  for (Shard& shard : shards_) {
    shard.state->archive(archive);
    sorted(shard.memory.applied);
    sorted(shard.held);
    sorted(shard.absent);
    bool copied = shard.copy.has_value();
    archive(copied, shard.acknowledged, shard.published, shard.heard);
    if (copied) shard.copy->state->archive(archive);
    for (Item& item : shard.items) archive(item.entry);
    for (Waiting& waiting : shard.waiting) archive(waiting.index, waiting.send.reply);
    for (std::deque<Reply>& replies : shard.replies) archive(replies);
    for (Bulletin& bulletin : shard.bulletins) archive(bulletin.index, bulletin.request);
  }
  for (ModelWorker& each : workers_) each.archive(archive);
  // Two sums in the manner of FNV, so that two states are not taken for one.
  std::pair<uint64_t, uint64_t> sums{14695981039346656037u, 88172645463325252u};
  for (const std::byte byte : archive.take()) {
    sums.first = (sums.first ^ static_cast<uint64_t>(byte)) * 1099511628211u;
    sums.second = (sums.second + static_cast<uint64_t>(byte)) * 6364136223846793005u + 1;
  }
  return sums;
}

}  // namespace tutti::parameter_server

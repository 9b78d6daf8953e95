// What a server writes down now and then, and how it goes on from there.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "strategies/parameter_server/server.h"
#include "strategies/parameter_server/snapshot.h"

namespace tutti::parameter_server {

// After each update whose number `snapshot_every` divides: so all shards have the same ones.
void Server::take_snapshot() {
  if (config_.snapshot_every == 0 || version_ % config_.snapshot_every != 0) return;
  if (!leads() || context_.folder.empty() || node_.clock().cost_only()) return;
  const SnapshotInfo info{.shard = index_,
                          .shards = ring_.shards(),
                          .elements = elements(),
                          .version = version_,
                          .samples = samples_,
                          .optimizer_steps = shard_.optimizer_steps()};
  std::vector<std::span<const std::byte>> parts;
  for (const std::span<float> part : shard_.state())
    parts.push_back(bytes_of(std::span<const float>(part)));
  const std::vector<int64_t> saved = coordinates() ? coordinator_->save() : std::vector<int64_t>();
  parts.push_back(bytes_of(std::span<const int64_t>(saved)));
  write_snapshot(context_.folder, info, parts);
  local_.count("snapshots");
}

void Server::resume() {
  if (node_.clock().cost_only()) return;
  const int64_t version = newest_snapshot(config_.resume, ring_.shards(), context_.log);
  const std::string path = snapshot_path(config_.resume, index_, version);
  const Snapshot snapshot = read_snapshot(path);
  std::span<const std::byte> left = snapshot.content;
  bool fits = snapshot.info.elements == elements();
  for (const std::span<float> part : shard_.state()) {
    fits = fits && left.size() >= part.size_bytes();
    if (!fits) break;
    std::memcpy(part.data(), left.data(), part.size_bytes());
    left = left.subspan(part.size_bytes());
  }
  std::vector<int64_t> saved(left.size() / sizeof(int64_t));
  if (!saved.empty()) std::memcpy(saved.data(), left.data(), saved.size() * sizeof(int64_t));
  fits = fits && left.size() % sizeof(int64_t) == 0;
  if (fits) fits = coordinates() ? coordinator_->restore(version, saved) : saved.empty();
  if (!fits)
    throw DataError(
        fmt::format("{}: is of another model, optimizer or number of workers: go on "
                    "with the job of that run (its job.toml)",
                    path));
  shard_.resume(snapshot.info.optimizer_steps);
  version_ = version;
  samples_ = snapshot.info.samples;
  context_.log.info(fmt::format("goes on from update {} of {}", version, config_.resume));
  if (coordinates()) context_.recorder.count("resumed_at_update", version);
}

}  // namespace tutti::parameter_server

#include "strategies/parameter_server/snapshot_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "strategies/parameter_server/run_settings.h"
#include "strategies/parameter_server/snapshot.h"

namespace tutti::parameter_server {
namespace {

// False: there is less left than that.
template <class T>
bool take_from(std::span<const std::byte>& left, std::span<T> values) {
  if (left.size() < values.size_bytes()) return false;
  if (!values.empty()) std::memcpy(values.data(), left.data(), values.size_bytes());
  left = left.subspan(values.size_bytes());
  return true;
}

}  // namespace

void SnapshotKeeper::write(const output::Snapshot& due) {
  if (context_.folder.empty() || !context_.arithmetic().is_done()) return;
  RowShard* const sparse = shard_.rows();
  const SnapshotInfo info{.shard = state_.settings().shard,
                          .shards = shards_,
                          .elements = sparse ? sparse->table().size() : shard_.range().size(),
                          .version = due.version,
                          .samples = due.samples,
                          .optimizer_steps = shard_.optimizer_steps(),
                          .steps = due.steps};
  // The settings are computed only once, because they include fingerprints of all samples.
  if (settings_.empty())
    settings_ = to_text(run_settings(context_.task, context_.optimizer, context_.cluster, config_,
                                     sizes_of(context_.data)));
  std::vector<std::span<const std::byte>> parts;
  Buffer<float> rows;
  if (sparse) {
    rows = sparse->save(false);
    parts.push_back(bytes_of(sparse->table().keys()));
    parts.push_back(bytes_of(std::span<const float>(rows.span())));
  }
  for (const std::span<float> part : shard_.state())
    parts.push_back(bytes_of(std::span<const float>(part)));
  parts.push_back(bytes_of(std::span<const int64_t>(due.coordinator)));
  write_snapshot(context_.folder, info, settings_, parts);
  local_.count("snapshots");
}

bool SnapshotKeeper::resume_rows(uint64_t count, std::span<const std::byte>& left) {
  RowShard& rows = *shard_.rows();
  if (count > left.size() / sizeof(uint64_t)) return false;
  std::vector<uint64_t> keys(count);
  if (!take_from(left, std::span(keys))) return false;
  std::vector<float> saved(count * rows.stride());
  return take_from(left, std::span(saved)) && rows.restore(keys, 0, saved);
}

void SnapshotKeeper::resume() {
  if (!context_.arithmetic().is_done()) return;
  const int64_t version = newest_snapshot(config_.resume, shards_, context_.log);
  const std::string path = snapshot_path(config_.resume, state_.settings().shard, version);
  const Snapshot snapshot = read_snapshot(path);
  std::span<const std::byte> left = snapshot.content;
  bool fits = shard_.rows() ? resume_rows(snapshot.info.elements, left)
                            : snapshot.info.elements == shard_.range().size();
  for (const std::span<float> part : shard_.state()) fits = fits && take_from(left, part);
  std::vector<int64_t> saved(left.size() / sizeof(int64_t));
  if (!saved.empty()) std::memcpy(saved.data(), left.data(), saved.size() * sizeof(int64_t));
  fits = fits && left.size() % sizeof(int64_t) == 0;
  if (!fits || !state_.resume(version, snapshot.info.samples, saved))
    throw DataError(
        fmt::format("{}: is of another model, optimizer or number of workers: go on "
                    "with the job of that run (its job.toml)",
                    path));
  shard_.resume(snapshot.info.optimizer_steps);
  context_.log.info(fmt::format("goes on from update {} of {}", version, config_.resume));
  if (state_.settings().coordinates()) context_.recorder.count("resumed_at_update", version);
}

}  // namespace tutti::parameter_server

// What a server writes down now and then, and how it goes on from there (snapshot.h).
#pragma once

#include <string>

#include "strategies/parameter_server/shard.h"
#include "strategies/parameter_server/shard_state.h"

namespace tutti::parameter_server {

class SnapshotKeeper {
 public:
  // `shards` is how many there are in all.
  SnapshotKeeper(Context& context, Recorder& local, const Config& config, int shards,
                 ShardState& state, Shard& shard)
      : context_(context),
        local_(local),
        config_(config),
        shards_(shards),
        state_(state),
        shard_(shard) {}

  // Writes the parameters as they are now. Nothing when the run keeps no files.
  void write(const output::Snapshot& due);
  // Goes on from the last snapshot of the run that the settings name. Throws DataError.
  void resume();

 private:
  // Sparse: keys, and their rows with the optimizer's state.
  bool resume_rows(uint64_t count, std::span<const std::byte>& left);

  Context& context_;
  Recorder& local_;
  const Config& config_;
  int shards_;
  ShardState& state_;
  Shard& shard_;
  std::string settings_;  // of the run; first shard only
};

}  // namespace tutti::parameter_server

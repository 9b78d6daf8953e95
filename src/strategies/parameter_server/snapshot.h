// Snapshots: a server's shard in a file, so that a run whose servers are lost can go on from there.
//
// A file gets its name when it is whole, and has its size and a checksum in it, so that a reader
// takes all of it or none. The last two of each shard are kept: a set is usable only
// when every shard has one of the same update. That of the first shard also tells the settings of
// its run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/log.h"

namespace tutti::parameter_server {

struct SnapshotInfo {
  int32_t shard = 0, shards = 1;
  uint64_t elements = 0;  // parameters of the shard, or rows of a sparse one
  int64_t version = 0;    // updates in them
  int64_t samples = 0;    // of all workers, in them
  int64_t optimizer_steps = 0;
  uint64_t run = 0;   // a checksum of the settings, the same for all shards of a run
  int64_t steps = 0;  // of the run, in them; first shard only
};

struct Snapshot {
  SnapshotInfo info;
  std::string settings;            // of the run (run_settings.h); first shard only
  std::vector<std::byte> content;  // the parts, one after the other
};

// Writes the parts to the folder of snapshots of a run and removes the last but two. Throws
// DataError.
void write_snapshot(const std::string& run_folder, const SnapshotInfo& info,
                    const std::string& settings, std::span<const std::span<const std::byte>> parts);

std::string snapshot_path(const std::string& run_folder, int shard, int64_t version);

// Throws DataError naming the file and what is wrong with it.
Snapshot read_snapshot(const std::string& path);

// The newest update of which every shard has a snapshot that is whole. Says in the log which were
// passed over. Throws DataError when there is none.
int64_t newest_snapshot(const std::string& run_folder, int shards, const Log& log);

}  // namespace tutti::parameter_server

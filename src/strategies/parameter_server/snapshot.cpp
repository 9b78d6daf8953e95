#include "strategies/parameter_server/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <type_traits>

#include "core/error.h"
#include "core/regular_file.h"
#include "core/whole_file.h"

namespace tutti::parameter_server {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSnapshotMagic = 0x3250414e53535054;  // "TPSSNAP2"
constexpr uint64_t kFirstMagic = 0x3150414e53535054;     // "TPSSNAP1": without settings
constexpr size_t kKept = 2;

struct Header {
  uint64_t magic = kSnapshotMagic;
  uint64_t checksum = 0;  // of the rest of the header and of the content
  uint64_t bytes = 0;     // of the settings and the content
  uint64_t settings = 0;  // bytes of the settings, which come first
  SnapshotInfo info;
};
static_assert(std::is_trivially_copyable_v<Header>);

// FNV-1a, eight bytes at a time: against torn files and bad disks, not against malice. The same
// however the bytes are cut into parts.
class Checksum {
 public:
  void add(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const size_t count = std::min(bytes.size(), word_.size() - filled_);
      std::memcpy(word_.data() + filled_, bytes.data(), count);
      filled_ += count;
      bytes = bytes.subspan(count);
      if (filled_ == word_.size()) mix();
    }
  }
  uint64_t value() {
    if (filled_ > 0) mix();
    return value_;
  }

 private:
  void mix() {
    uint64_t word = 0;
    std::memcpy(&word, word_.data(), filled_);
    value_ = (value_ ^ word) * 0x100000001b3u;
    value_ ^= value_ >> 29;
    filled_ = 0;
  }
  std::array<std::byte, sizeof(uint64_t)> word_ = {};
  size_t filled_ = 0;
  uint64_t value_ = 0xcbf29ce484222325u;
};

std::span<const std::byte> checked_part(const Header& header) {
  const auto all = std::as_bytes(std::span<const Header>(&header, 1));
  return all.subspan(offsetof(Header, bytes));
}

std::string folder_of(const std::string& run_folder) { return run_folder + "/snapshots"; }

// The updates of which this shard has a file, newest first.
std::vector<int64_t> versions_of(const std::string& run_folder, int shard) {
  std::vector<int64_t> versions;
  std::error_code none;
  for (const auto& file : fs::directory_iterator(folder_of(run_folder), none)) {
    int owner = 0;
    long long version = 0;
    const std::string name = file.path().filename().string();
    if (std::sscanf(name.c_str(), "shard-%d-update-%lld.bin", &owner, &version) == 2 &&
        owner == shard && file.path() == snapshot_path(run_folder, shard, version))
      versions.push_back(version);
  }
  std::sort(versions.begin(), versions.end(), std::greater<>());
  return versions;
}

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

}  // namespace

std::string snapshot_path(const std::string& run_folder, int shard, int64_t version) {
  return fmt::format("{}/shard-{}-update-{}.bin", folder_of(run_folder), shard, version);
}

void write_snapshot(const std::string& run_folder, const SnapshotInfo& info,
                    const std::string& settings,
                    std::span<const std::span<const std::byte>> parts) {
  const std::string path = snapshot_path(run_folder, info.shard, info.version);
  std::error_code failed;
  fs::create_directories(folder_of(run_folder), failed);
  if (failed)
    throw DataError(fmt::format("{}: cannot be made: {}", folder_of(run_folder), failed.message()));
  Header header;
  header.info = info;
  Checksum run;
  run.add(std::as_bytes(std::span(settings)));
  header.info.run = run.value();
  const std::string kept = info.shard == 0 ? settings : "";
  header.bytes = header.settings = kept.size();
  for (const auto part : parts) header.bytes += part.size();
  Checksum checksum;
  checksum.add(checked_part(header));
  checksum.add(std::as_bytes(std::span(kept)));
  for (const auto part : parts) checksum.add(part);
  header.checksum = checksum.value();
  WholeFile file(path);
  file.write(std::as_bytes(std::span<const Header>(&header, 1)));
  file.write(std::as_bytes(std::span(kept)));
  for (const auto part : parts) file.write(part);
  file.sync();
  file.publish();
  remove_leftovers(folder_of(run_folder));
  const std::vector<int64_t> versions = versions_of(run_folder, info.shard);
  for (size_t i = kKept; i < versions.size(); ++i)
    fs::remove(snapshot_path(run_folder, info.shard, versions[i]));
}

Snapshot read_snapshot(const std::string& path) {
  require_regular_file(path);
  const File file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) throw DataError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  Header header;
  const size_t count = std::fread(&header, 1, sizeof(header), file.get());
  if (count >= sizeof(header.magic) && header.magic == kFirstMagic)
    throw DataError(
        fmt::format("{}: was written by an earlier version of tutti, whose snapshots do not tell "
                    "the settings of their run; go on with that version, or begin anew",
                    path));
  if (count != sizeof(header) || header.magic != kSnapshotMagic)
    throw DataError(fmt::format("{}: is no snapshot", path));
  const uint64_t size = fs::file_size(path);
  if (size - sizeof(header) != header.bytes || header.settings > header.bytes)
    throw DataError(fmt::format("{}: has {} bytes instead of {}: it was cut off", path, size,
                                sizeof(header) + header.bytes));
  Snapshot snapshot{header.info, std::string(header.settings, ' '),
                    std::vector<std::byte>(header.bytes - header.settings)};
  const auto read = [&](auto& into) {
    return std::fread(into.data(), 1, into.size(), file.get()) == into.size();
  };
  if (!read(snapshot.settings) || !read(snapshot.content))
    throw DataError(fmt::format("{}: cannot be read to its end", path));
  Checksum checksum;
  checksum.add(checked_part(header));
  checksum.add(std::as_bytes(std::span(snapshot.settings)));
  checksum.add(snapshot.content);
  if (checksum.value() != header.checksum)
    throw DataError(fmt::format("{}: is damaged: its checksum differs", path));
  return snapshot;
}

int64_t newest_snapshot(const std::string& run_folder, int shards, const Log& log) {
  std::string problems;
  for (const int64_t version : versions_of(run_folder, 0)) {
    std::string problem;
    uint64_t run = 0;
    for (int shard = 0; shard < shards && problem.empty(); ++shard) {
      try {
        const SnapshotInfo info = read_snapshot(snapshot_path(run_folder, shard, version)).info;
        if (info.shard != shard || info.shards != shards || info.version != version)
          problem = fmt::format("{}: is of shard {} of {}, update {}",
                                snapshot_path(run_folder, shard, version), info.shard, info.shards,
                                info.version);
        if (shard == 0) run = info.run;
        if (problem.empty() && info.run != run)
          problem = fmt::format("{}: is of another run than that of the first shard",
                                snapshot_path(run_folder, shard, version));
      } catch (const DataError& error) {
        problem = error.what();
      }
    }
    if (problem.empty()) return version;
    log.warn(problem + "; trying the snapshot before");
    problems += "\n  " + problem;
  }
  throw DataError(fmt::format("{}: no snapshot to go on from that is whole for {} servers{}",
                              folder_of(run_folder), shards, problems));
}

}  // namespace tutti::parameter_server

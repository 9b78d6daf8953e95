// A server that is killed while it writes a snapshot leaves whole ones, and nothing else.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "core/error.h"
#include "core/temporary_folder.h"
#include "strategies/parameter_server/snapshot.h"

namespace tutti::parameter_server {
namespace {

namespace fs = std::filesystem;

TEST(SnapshotKill, LeavesWholeSnapshotsAlone) {
  const TemporaryFolder home;
  const std::string& folder = home.path();
  const int nameless = open(folder.c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (nameless < 0) GTEST_SKIP() << "this file system has no files without names";
  close(nameless);
  const std::vector<std::byte> shard(4'000'000, std::byte{7});
  for (int kill_ms = 1; kill_ms <= 40; kill_ms += 3) {
    const pid_t server = fork();
    if (server == 0)
      for (int64_t version = 1;; ++version) {
        const std::span<const std::byte> part(shard);
        write_snapshot(folder, {.version = version}, "", {&part, 1});
      }
    std::this_thread::sleep_for(std::chrono::milliseconds(kill_ms));
    kill(server, SIGKILL);
    waitpid(server, nullptr, 0);
    if (!fs::exists(folder + "/snapshots")) continue;
    for (const auto& entry : fs::directory_iterator(folder + "/snapshots")) {
      EXPECT_EQ(entry.path().extension(), ".bin") << entry.path();
      EXPECT_NO_THROW(read_snapshot(entry.path().string())) << entry.path();
    }
    fs::remove_all(folder + "/snapshots");
  }
}

// Both shards are whole, but of runs with different settings.
TEST(SnapshotsOfTwoRuns, AreNotMixed) {
  const TemporaryFolder home;
  const std::string& folder = home.path();
  const std::vector<std::byte> shard(64, std::byte{7});
  const std::span<const std::byte> part(shard);
  const auto write = [&](int32_t index, const std::string& settings) {
    write_snapshot(folder, {.shard = index, .shards = 2, .version = 10}, settings, {&part, 1});
  };
  write(0, "task.seed 1");
  write(1, "task.seed 1");
  EXPECT_EQ(newest_snapshot(folder, 2, Log()), 10);
  EXPECT_EQ(read_snapshot(snapshot_path(folder, 0, 10)).settings, "task.seed 1");
  write(1, "task.seed 9");
  try {
    newest_snapshot(folder, 2, Log());
    ADD_FAILURE() << "it took shards of two runs";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("another run"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tutti::parameter_server

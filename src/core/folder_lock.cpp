#include "core/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "core/error.h"

namespace tutti {
namespace {

// Children of a killed process keep its lock until they notice that it is gone.
constexpr auto kOthersEnd = std::chrono::milliseconds(1000);

// Returns false when somebody else holds the lock.
bool take_lock(int folder) {
  const auto end = std::chrono::steady_clock::now() + kOthersEnd;
  while (flock(folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

}  // namespace

FolderLock::FolderLock(const std::string& folder)
    : folder_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (folder_ < 0) throw ConfigError("--out", fmt::format("{}: {}", folder, std::strerror(errno)));
  if (take_lock(folder_)) return;
  close(folder_);
  throw ConfigError("--out", fmt::format("{}: another tutti is at work in it; wait for its end, or "
                                         "choose another folder",
                                         folder));
}

FolderLock::~FolderLock() {
  if (folder_ >= 0) close(folder_);
}

FolderLock::FolderLock(FolderLock&& other) noexcept : folder_(std::exchange(other.folder_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(folder_, other.folder_);
  return *this;
}

}  // namespace tutti

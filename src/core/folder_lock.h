// A folder that one process at a time works in. The system forgets the lock when its holder, and
// what the holder started, have ended, however that was: a lock of a dead process is no obstacle.
#pragma once

#include <string>

namespace tutti {

class FolderLock {
 public:
  FolderLock() = default;  // of no folder
  // Throws ConfigError naming --out when somebody else is at work in the folder, or when it cannot
  // be opened. A file system that knows no locks is used without.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;

 private:
  int folder_ = -1;
};

}  // namespace tutti

// A lock on a folder that one process at a time works in. The system releases it when its holder
// and the children of the holder have ended, for whatever reason, so a dead process never blocks
// others.
#pragma once

#include <string>

namespace tutti {

class FolderLock {
 public:
  FolderLock() = default;  // locks no folder
  // Throws ConfigError naming --out when somebody else works in the folder, or when it cannot be
  // opened. On a file system without locks nothing is locked.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;

 private:
  int folder_ = -1;
};

}  // namespace tutti

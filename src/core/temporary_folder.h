// A folder for what is needed for a while: it is removed with all it holds.
#pragma once

#include <string>

namespace tutti {

class TemporaryFolder {
 public:
  TemporaryFolder();  // throws Error when none can be made
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace tutti

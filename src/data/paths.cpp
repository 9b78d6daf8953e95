#include "data/paths.h"

#include <pwd.h>
#include <unistd.h>

#include <filesystem>

namespace tutti {
namespace {

// From the user data base instead of the environment, so that every process sees the same.
std::filesystem::path home_directory() {
  const passwd* entry = getpwuid(getuid());
  return entry != nullptr ? entry->pw_dir : "/";
}

}  // namespace

std::string complete_path(const std::string& path, const std::string& base_dir) {
  namespace fs = std::filesystem;
  if (path.empty()) return path;
  if (path.starts_with("~/")) return (home_directory() / path.substr(2)).lexically_normal();
  return fs::absolute(fs::path(base_dir) / path).lexically_normal();
}

std::string cache_directory() { return home_directory() / ".cache" / "tutti"; }

}  // namespace tutti

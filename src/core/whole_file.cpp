#include "core/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kMode = 0666;  // less what the user's mask takes away
constexpr std::string_view kTemporary = ".tmp";

std::string parent_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// The process that a temporary name names, or 0.
pid_t writer_of(std::string_view name) {
  if (!name.ends_with(kTemporary)) return 0;
  name.remove_suffix(kTemporary.size());
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return 0;
  pid_t writer = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + dot + 1, end, writer);
  return error == std::errc{} && rest == end && writer > 0 ? writer : 0;
}

}  // namespace

void throw_unwritable(const std::string& path, int reason) {
  const std::string text = fmt::format("{}: cannot be written: {}", path, std::strerror(reason));
  constexpr std::array kOfTheDisk = {ENOSPC, EDQUOT, EFBIG, EIO};
  if (std::find(kOfTheDisk.begin(), kOfTheDisk.end(), reason) != kOfTheDisk.end())
    throw DiskError(text);
  throw DataError(text);
}

WholeFile::WholeFile(std::string path)
    : path_(std::move(path)), temporary_(fmt::format("{}.{}{}", path_, getpid(), kTemporary)) {
  // By this link a file without a name is given one.
  if (access("/proc/self/fd", X_OK) == 0)
    file_ = open(parent_of(path_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kMode);
  if (file_ >= 0) return;
  named_ = true;
  file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode);
  if (file_ < 0) fail(errno);
}

WholeFile::~WholeFile() {
  if (file_ >= 0) close(file_);
  if (named_) std::remove(temporary_.c_str());
}

void WholeFile::fail(int error) const { throw_unwritable(path_, error); }

void WholeFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void WholeFile::sync() {
  if (fsync(file_) != 0) fail(errno);
}

bool WholeFile::link_as(const std::string& name) const {
  const std::string file = fmt::format("/proc/self/fd/{}", file_);
  return linkat(AT_FDCWD, file.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

void WholeFile::publish() {
  const bool linked = !named_ && link_as(path_);
  if (!linked && !named_) {
    if (errno != EEXIST) fail(errno);
    remove_leftovers(parent_of(path_));
    // Of an earlier process with the number of this one.
    if (!link_as(temporary_) && (std::remove(temporary_.c_str()) != 0 || !link_as(temporary_)))
      fail(errno);
    named_ = true;
  }
  // Some file systems say only now that there was no room.
  if (close(std::exchange(file_, -1)) != 0) fail(errno);
  if (linked) return;
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
  named_ = false;
}

void remove_leftovers(const std::string& folder) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const pid_t writer = writer_of(entry.path().filename().string());
    if (writer > 0 && kill(writer, 0) != 0 && errno == ESRCH) fs::remove(entry.path(), ignored);
  }
}

}  // namespace tutti

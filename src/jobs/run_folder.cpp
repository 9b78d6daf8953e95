#include "jobs/run_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <span>

#include "core/error.h"
#include "core/printable.h"
#include "core/regular_file.h"
#include "core/whole_file.h"

namespace tutti {

namespace fs = std::filesystem;

std::string read_file(const std::string& path) {
  require_regular_file(path);
  std::ifstream file(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad())
    throw DataError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  return content;
}

namespace {

std::optional<struct stat> status_of(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? std::optional(status) : std::nullopt;
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool is_standard_output(const struct stat& status) {
  struct stat output {};
  return fstat(STDOUT_FILENO, &output) == 0 && same_file(status, output);
}

// What a link stands for, also when that is not there yet.
std::string behind_links(const std::string& path) {
  constexpr int kMostLinks = 40;  // as in the kernel
  fs::path result = path;
  std::error_code failed;
  for (int i = 0; i < kMostLinks && fs::is_symlink(result, failed); ++i)
    result = result.parent_path() / fs::read_symlink(result, failed);
  return result.string();
}

bool fill(const std::string& path, std::string_view content) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) return false;
  const bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  const int reason = errno;
  const bool closed = std::fclose(file) == 0;
  if (!written) errno = reason;
  return written && closed;
}

}  // namespace

void write_file(const std::string& path, std::string_view content) {
  const auto there = status_of(path);
  if (path == kStandardOutput || (there && is_standard_output(*there))) {
    // A terminal obeys what a file or a pipe keeps as it is. Who ends the program says whether all
    // of it could be written.
    if (isatty(STDOUT_FILENO))
      std::cout << printable(content);
    else
      std::cout << content;
    return;
  }
  const std::string target = behind_links(path);
  const auto replaced = status_of(target);
  // Only a regular file can be replaced by another one; a device, a pipe or a descriptor's link
  // below /proc would be gone.
  const bool in_place =
      there && (!S_ISREG(there->st_mode) || !replaced || !same_file(*there, *replaced));
  if (!in_place) {
    WholeFile file(target);
    file.write(std::as_bytes(std::span(content)));
    file.publish();
  } else if (!fill(path, content)) {
    throw_unwritable(path, errno);
  }
}

RunFolder create_run_folder(const std::string& path, const std::string& name) {
  std::string folder = path;
  std::error_code failed;
  if (folder.empty()) {
    const std::time_t now = std::time(nullptr);
    char stamp[32];
    std::strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", std::localtime(&now));
    folder = fmt::format("runs/{}-{}", name, stamp);
    for (int i = 2; fs::exists(folder, failed); ++i)
      folder = fmt::format("runs/{}-{}-{}", name, stamp, i);
  }
  const auto refuse_run = [&] {
    std::error_code unknown;
    if (fs::exists(fs::path(folder) / "run.json", unknown))
      throw ConfigError("--out", fmt::format("{}: already holds a run; choose another folder or "
                                             "remove it",
                                             folder));
  };
  refuse_run();
  fs::create_directories(folder, failed);
  if (failed || access(folder.c_str(), W_OK) != 0)
    throw ConfigError("--out",
                      fmt::format("{}: the folder of the run cannot be written: {}; name one with "
                                  "--out where you may write",
                                  folder, failed ? failed.message() : std::strerror(errno)));
  FolderLock lock(folder);
  refuse_run();  // another process may have finished one before we had the lock
  // Of a run that was killed: what is half written, and logs, which are only ever added to.
  remove_leftovers(folder);
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    const std::string file = entry.path().filename().string();
    std::error_code kept;
    if (const auto type = entry.status(kept).type();
        type == fs::file_type::fifo || type == fs::file_type::socket)
      throw ConfigError("--out", fmt::format("{}: is a pipe or a socket in the folder of the run; "
                                             "remove it, or choose another folder",
                                             entry.path().string()));
    if (file.starts_with("node-") && file.ends_with(".log")) fs::remove(entry.path(), kept);
  }
  return {folder, std::move(lock)};
}

void append_to_file(const std::string& path, std::string_view text) {
  std::FILE* file = std::fopen(path.c_str(), "ab");
  int reason = file ? 0 : errno;
  if (file && std::fwrite(text.data(), 1, text.size(), file) != text.size()) reason = errno;
  if (file && std::fclose(file) != 0 && reason == 0) reason = errno;
  if (reason != 0) throw_unwritable(path, reason);
}

std::string last_whole_line(const std::string& path) {
  std::error_code unknown;
  if (!fs::exists(path, unknown)) return "";
  const std::string text = read_file(path);
  const size_t end = text.find_last_of('\n');
  const size_t whole = end == text.npos ? 0 : end + 1;
  if (whole < text.size() && truncate(path.c_str(), static_cast<off_t>(whole)) != 0)
    throw_unwritable(path, errno);
  if (end == text.npos) return "";
  const size_t before = end == 0 ? text.npos : text.find_last_of('\n', end - 1);
  const size_t begin = before == text.npos ? 0 : before + 1;
  return text.substr(begin, end - begin);
}

AppendFile::AppendFile(std::string path, std::string_view header, bool continues)
    : path_(std::move(path)), file_(std::fopen(path_.c_str(), continues ? "ab" : "wb")) {
  if (!file_) throw_unwritable(path_, errno);
  std::fseek(file_, 0, SEEK_END);
  if (std::ftell(file_) == 0) append(header);
}

AppendFile::~AppendFile() { std::fclose(file_); }

void AppendFile::append(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size())
    throw_unwritable(path_, errno);
}

void AppendFile::flush() {
  if (std::fflush(file_) != 0) throw_unwritable(path_, errno);
}

}  // namespace tutti

#include "jobs/run_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/error.h"

namespace tutti {

namespace fs = std::filesystem;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad())
    throw DataError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  return content;
}

void write_file(const std::string& path, std::string_view content) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  const bool written =
      file && std::fwrite(content.data(), 1, content.size(), file) == content.size();
  const bool closed = file && std::fclose(file) == 0;
  if (!written || !closed || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const std::string reason = std::strerror(errno);
    std::remove(temporary.c_str());
    throw DataError(fmt::format("{}: cannot be written: {}", path, reason));
  }
}

std::string create_run_folder(const std::string& path, const std::string& name) {
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
  if (fs::exists(fs::path(folder) / "run.json", failed))
    throw ConfigError("--out", fmt::format("{}: already holds a run; choose another folder or "
                                           "remove it",
                                           folder));
  fs::create_directories(folder, failed);
  if (failed || access(folder.c_str(), W_OK) != 0)
    throw ConfigError("--out", fmt::format("{}: cannot be written: {}", folder,
                                           failed ? failed.message() : std::strerror(errno)));
  return folder;
}

AppendFile::AppendFile(std::string path, std::string_view header)
    : path_(std::move(path)), file_(std::fopen(path_.c_str(), "wb")) {
  if (!file_)
    throw DataError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
  append(header);
}

AppendFile::~AppendFile() { std::fclose(file_); }

void AppendFile::append(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size())
    throw DataError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
}

void AppendFile::flush() {
  if (std::fflush(file_) != 0)
    throw DataError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
}

}  // namespace tutti

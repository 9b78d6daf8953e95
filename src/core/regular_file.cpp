#include "core/regular_file.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/error.h"

namespace tutti {

void require_regular_file(const std::string& path) {
  using std::filesystem::file_type;
  std::error_code unknown;
  const file_type type = std::filesystem::status(path, unknown).type();
  const char* what = nullptr;
  if (type == file_type::directory) what = "folder";
  if (type == file_type::fifo) what = "pipe";
  if (type == file_type::socket) what = "socket";
  if (type == file_type::character || type == file_type::block) what = "device";
  if (what) throw DataError(fmt::format("{}: cannot be read: it is a {}, not a file", path, what));
}

}  // namespace tutti

#include "core/temporary_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/error.h"

namespace tutti {

TemporaryFolder::TemporaryFolder()
    : path_((std::filesystem::temp_directory_path() / "tutti-XXXXXX").string()) {
  if (!mkdtemp(path_.data()))
    throw Error(fmt::format("{}: cannot be made: {}", path_, std::strerror(errno)));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace tutti

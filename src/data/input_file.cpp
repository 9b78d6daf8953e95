#include "data/input_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/error.h"

namespace tutti {
namespace {

constexpr size_t kChunk = size_t{1} << 20;
// Deflate emits at most 258 bytes for every two bits (zlib's technical notes): 1032 to 1.
constexpr uint64_t kMostExpansion = 1032;

uint64_t size_of_regular_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    throw DataError(fmt::format("{}: there is no such file; check the path", path));
  if (!std::filesystem::is_regular_file(status))
    throw DataError(
        fmt::format("{}: this is {}; name the file itself", path,
                    std::filesystem::is_directory(status) ? "a folder, not a file" : "not a file"));
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error) throw DataError(fmt::format("{}: cannot be read: {}", path, error.message()));
  if (size == 0) throw DataError(fmt::format("{}: the file is empty; fetch it again", path));
  return size;
}

}  // namespace

struct InputFile::Stream {
  gzFile file = nullptr;
  ~Stream() {
    if (file) gzclose_r(file);
  }
};

InputFile::InputFile(const std::string& path) : path_(path), stream_(std::make_unique<Stream>()) {
  const uint64_t size = size_of_regular_file(path);
  stream_->file = gzopen(path.c_str(), "rbe");
  if (!stream_->file)
    throw DataError(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  gzbuffer(stream_->file, 1 << 17);
  const bool is_plain = gzdirect(stream_->file) == 1;
  if (is_plain && path.ends_with(".gz"))
    throw DataError(fmt::format(
        "{}: the name says gzip but the content does not; fetch the file again, or rename it",
        path));
  most_bytes_ = is_plain ? size : size * kMostExpansion;
}

InputFile::~InputFile() = default;

size_t InputFile::read(std::span<uint8_t> out) {
  size_t total = 0;
  while (total < out.size()) {
    const auto wanted = static_cast<unsigned>(std::min(out.size() - total, kChunk));
    const int got = gzread(stream_->file, out.data() + total, wanted);
    int code = Z_OK;
    const char* reason = gzerror(stream_->file, &code);
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END))
      throw DataError(fmt::format("{}: the file is damaged ({}); fetch it again", path_,
                                  code == Z_BUF_ERROR ? "it ends too early" : reason));
    if (got == 0) break;
    total += static_cast<size_t>(got);
  }
  return total;
}

std::vector<uint8_t> InputFile::read_up_to(uint64_t size) {
  std::vector<uint8_t> content;
  while (content.size() < size) {
    const size_t before = content.size();
    const auto wanted = static_cast<size_t>(std::min<uint64_t>(size - before, kChunk));
    content.resize(before + wanted);
    content.resize(before + read(std::span(content).subspan(before)));
    if (content.size() < before + wanted) break;
  }
  return content;
}

}  // namespace tutti

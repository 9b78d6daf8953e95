// A file to read from front to back, gzip'ed or not.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tutti {

// Every method throws DataError, naming the file and the remedy, when the file is missing,
// truncated or corrupt. Memory is taken as content arrives, never because a header promised it, so
// that a damaged file cannot ask for more than it holds.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  // No more than this can come out of the file, whatever its headers say.
  uint64_t most_bytes() const { return most_bytes_; }
  // Fills `out`; less than that only at the end of the file.
  size_t read(std::span<uint8_t> out);
  // The next `size` bytes, or fewer at the end of the file.
  std::vector<uint8_t> read_up_to(uint64_t size);
  std::vector<uint8_t> read_rest() { return read_up_to(UINT64_MAX); }

 private:
  struct Stream;  // zlib's, kept out of this header
  std::string path_;
  uint64_t most_bytes_ = 0;
  std::unique_ptr<Stream> stream_;
};

}  // namespace tutti

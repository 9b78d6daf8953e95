// A text file line by line, and the words of a line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

class TextLines {
 public:
  explicit TextLines(const std::string& path);  // reads it, gzip'ed or not

  bool next(std::string_view& line);  // without its end; false at the end of the file
  const std::string& path() const { return path_; }
  size_t line() const { return line_; }  // the number of the last one, from 1
  size_t bytes() const { return content_.size(); }
  // "FILE, line N: ", for messages.
  std::string place() const;

 private:
  std::string path_;
  std::vector<uint8_t> content_;
  size_t position_ = 0;
  size_t line_ = 0;
};

// Takes the next word from the front of `text`; empty when there is none.
std::string_view take_word(std::string_view& text);

}  // namespace tutti

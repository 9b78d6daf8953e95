#include "data/text_lines.h"

#include <fmt/format.h>

#include "data/input_file.h"

namespace tutti {

TextLines::TextLines(const std::string& path)
    : path_(path), content_(InputFile(path).read_rest()) {}

bool TextLines::next(std::string_view& line) {
  if (position_ >= content_.size()) return false;
  const std::string_view rest(reinterpret_cast<const char*>(content_.data()) + position_,
                              content_.size() - position_);
  line = rest.substr(0, rest.find('\n'));
  position_ += line.size() + 1;
  ++line_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

std::string TextLines::place() const { return fmt::format("{}, line {}: ", path_, line_); }

std::string_view take_word(std::string_view& text) {
  constexpr std::string_view kBlank = " \t\r";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return text = {};
  const size_t end = std::min(text.find_first_of(kBlank, begin), text.size());
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

}  // namespace tutti

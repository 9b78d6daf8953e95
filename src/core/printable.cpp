#include "core/printable.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti {
namespace {

bool is_control(unsigned char byte) { return byte < 0x20 || byte == 0x7f; }

// Some terminals treat U+0080 to U+009F as escapes, in UTF-8 or as single bytes.
bool is_second_control(unsigned char byte) { return byte >= 0x80 && byte <= 0x9f; }

bool continues(unsigned char byte) { return (byte & 0xc0) == 0x80; }

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  const auto show = [&](unsigned char byte) { result += fmt::format("\\x{:02x}", byte); };
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if ((is_control(byte) && byte != '\n' && byte != '\t') || is_second_control(byte)) {
      show(byte);
    } else if (byte == 0xc2 && is_second_control(next)) {
      show(byte);
    } else {
      result += text[i];
      if (byte < 0xc0) continue;
      for (size_t left = 3;
           left > 0 && i + 1 < text.size() && continues(static_cast<unsigned char>(text[i + 1]));
           --left)
        result += text[++i];
    }
  }
  return result;
}

bool is_one_line(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return is_control(static_cast<unsigned char>(c)); }) &&
         printable(text) == text;
}

}  // namespace tutti

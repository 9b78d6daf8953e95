#include "data/vocabulary.h"

#include <fmt/format.h>

#include <array>

#include "core/error.h"
#include "data/input_file.h"

namespace tutti {
namespace {

std::string name_of(uint8_t byte) {
  if (byte >= 0x20 && byte < 0x7f) return std::string(1, static_cast<char>(byte));
  return fmt::format("\\x{:02x}", byte);
}

std::vector<uint8_t> read_long_enough(const std::string& path, int64_t context) {
  std::vector<uint8_t> content = InputFile(path).read_rest();
  if (content.size() <= static_cast<size_t>(context) + 2)
    throw DataError(
        fmt::format("{}: {} characters are too few for a context of {}; lower "
                    "task.data.context or give a longer text",
                    path, content.size(), context));
  if (content.size() > UINT32_MAX)
    throw DataError(
        fmt::format("{}: texts of 4 GiB and more are not supported; split the file", path));
  return content;
}

}  // namespace

std::vector<std::string> character_names(const std::vector<uint8_t>& vocabulary) {
  std::vector<std::string> names;
  names.reserve(vocabulary.size());
  for (const uint8_t byte : vocabulary) names.push_back(name_of(byte));
  return names;
}

CodedText read_coded_text_like(const std::string& path, int64_t context,
                               const std::vector<std::string>& names) {
  CodedText text{read_long_enough(path, context), {}};
  std::array<int, 256> code{};
  code.fill(-1);
  for (size_t byte = 0; byte < code.size(); ++byte)
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == name_of(static_cast<uint8_t>(byte))) {
        code[byte] = static_cast<int>(i);
        text.vocabulary.push_back(static_cast<uint8_t>(byte));
      }
  for (uint8_t& byte : text.codes) {
    if (code[byte] < 0)
      throw DataError(
          fmt::format("{}: the character {} did not occur in the text that the model "
                      "was trained on",
                      path, name_of(byte)));
    byte = static_cast<uint8_t>(code[byte]);
  }
  return text;
}

CodedText read_coded_text(const std::string& path, int64_t context) {
  CodedText text{read_long_enough(path, context), {}};
  std::array<bool, 256> seen{};
  for (const uint8_t byte : text.codes) seen[byte] = true;
  std::array<uint8_t, 256> code{};
  for (size_t byte = 0; byte < seen.size(); ++byte)
    if (seen[byte]) {
      code[byte] = static_cast<uint8_t>(text.vocabulary.size());
      text.vocabulary.push_back(static_cast<uint8_t>(byte));
    }
  for (uint8_t& byte : text.codes) byte = code[byte];
  return text;
}

}  // namespace tutti

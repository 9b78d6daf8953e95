// The distinct bytes of a text, in ascending order, as codes 0, 1, ...
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tutti {

struct CodedText {
  std::vector<uint8_t> codes;  // one per character: its position in `vocabulary`
  std::vector<uint8_t> vocabulary;
};

// Throws DataError when the file is too short for task.data.context, or too long.
CodedText read_coded_text(const std::string& path, int64_t context);
// In the vocabulary (class names) of another text. Throws DataError for a character that it lacks.
CodedText read_coded_text_like(const std::string& path, int64_t context,
                               const std::vector<std::string>& names);

// Printable characters as themselves, others as \xNN.
std::vector<std::string> character_names(const std::vector<uint8_t>& vocabulary);

}  // namespace tutti

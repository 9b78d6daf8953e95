// Text from another process, another machine or a file, made safe to print.
#pragma once

#include <string>
#include <string_view>

namespace tutti {

// Makes control characters visible ("\\x1b[31m"), because a terminal would obey them. Line ends,
// tabs and letters of all languages stay as they are.
std::string printable(std::string_view text);

// Returns whether the text has no control characters. Line ends and tabs count too, because a name
// is one line.
bool is_one_line(std::string_view text);

}  // namespace tutti

// Text from elsewhere, made safe to print: of another process or machine, or of a file.
#pragma once

#include <string>
#include <string_view>

namespace tutti {

// Control characters, with which a terminal is told what to do, become visible: "\\x1b[31m". Ends
// of lines and tabs stay, and letters of all languages.
std::string printable(std::string_view text);

// Whether there is none in it, ends of lines and tabs included: a name is one line.
bool is_one_line(std::string_view text);

}  // namespace tutti

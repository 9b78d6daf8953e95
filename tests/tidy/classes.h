// What can be counted of a class: how much it does and how much it holds.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tutti::tidy {

// Functions are those that somebody has to read: not overrides, whose contract is elsewhere, not
// what is written in one line where it is declared, not what the compiler makes. Static members and
// nested types hold nothing for an object, so they do not count as its data.
struct ClassSize {
  std::string name;
  size_t line = 0;
  size_t functions = 0, members = 0;
  // Plain records, whose members are all public, are as large as what they describe.
  bool has_hidden_state = false;
};
// Every class and struct that is defined in `text`, nested ones too.
std::vector<ClassSize> classes_in(const std::string& text);

// The same text with blanks in the place of comments, of preprocessor lines, and of what stands
// between quotes.
std::string without_comments(const std::string& text);

}  // namespace tutti::tidy

// The rules of the house that a program can check, as functions of a file's path and text.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tutti::tidy {

struct SourceFile {
  std::string path;  // from the top folder: "src/core/error.h"
  std::string text;
};

// Each returns what it found wrong, one line each: "src/core/error.h:3: ...".
using Findings = std::vector<std::string>;
struct Rule {
  const char* name;
  Findings (*check)(const SourceFile& file);
};
const std::vector<Rule>& rules();

}  // namespace tutti::tidy

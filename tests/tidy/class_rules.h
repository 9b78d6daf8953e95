// Rules of the house about classes, which need all files at once.
#pragma once

#include <string>
#include <vector>

#include "tests/tidy/rules.h"

namespace tutti::tidy {

inline constexpr size_t kMostFunctions = 20;
inline constexpr size_t kMostMembers = 15;

// A class that is larger, and why. It may shrink, and then says so here, but it may not grow.
struct LargeClass {
  std::string path, name;
  size_t functions, members;
  const char* reason;
};
const std::vector<LargeClass>& large_classes();
// A class of several files, and why.
struct SpreadClass {
  std::string name;  // with its namespaces
  const char* reason;
};
const std::vector<SpreadClass>& spread_classes();

Findings check_class_sizes(const std::vector<SourceFile>& files,
                           const std::vector<LargeClass>& large);
Findings check_one_file_per_class(const std::vector<SourceFile>& files,
                                  const std::vector<SpreadClass>& spread);

}  // namespace tutti::tidy

#include "tests/tidy/rules.h"

#include <algorithm>
#include <array>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace tutti::tidy {
namespace {

constexpr size_t kMostColumns = 100;
constexpr size_t kMostLines = 400;

bool is_header(const SourceFile& file) { return file.path.ends_with(".h"); }
bool is_code(const SourceFile& file) {
  return is_header(file) || file.path.ends_with(".cpp") || file.path.ends_with(".js");
}

std::string at(const SourceFile& file, size_t line, const std::string& problem) {
  return file.path + ":" + std::to_string(line) + ": " + problem;
}

void for_each_line(const SourceFile& file,
                   const std::function<void(size_t number, const std::string& line)>& visit) {
  std::istringstream lines(file.text);
  std::string line;
  for (size_t number = 1; std::getline(lines, line); ++number) visit(number, line);
}

// Without comments, so that prose may speak of what code may not do.
std::string code_of(const std::string& line) { return line.substr(0, line.find("//")); }

// Findings for every line of code that `pattern` is found in.
Findings lines_with(const SourceFile& file, const std::regex& pattern, const std::string& problem) {
  Findings findings;
  for_each_line(file, [&](size_t number, const std::string& line) {
    std::smatch match;
    const std::string code = code_of(line);
    if (std::regex_search(code, match, pattern))
      findings.push_back(at(file, number, match.str() + " " + problem));
  });
  return findings;
}

Findings columns(const SourceFile& file) {
  Findings findings;
  for_each_line(file, [&](size_t number, const std::string& line) {
    // Characters, not bytes: continuation bytes of UTF-8 do not take a column.
    const auto width = static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) {
      return (static_cast<unsigned char>(c) >> 6) != 2;
    }));
    // What is imported is one line, as clang-format writes it.
    if (is_code(file) && width > kMostColumns && !line.starts_with("import "))
      findings.push_back(at(file, number, std::to_string(width) + " columns; at most 100"));
  });
  return findings;
}

Findings length(const SourceFile& file) {
  const auto lines = static_cast<size_t>(std::count(file.text.begin(), file.text.end(), '\n'));
  if (!is_code(file) || lines <= kMostLines) return {};
  return {at(file, lines, "more than 400 lines; split it by concern")};
}

Findings headers(const SourceFile& file) {
  Findings findings;
  if (!is_header(file)) return findings;
  if (!file.text.starts_with("//"))
    findings.push_back(at(file, 1, "a header starts with a comment: what and why"));
  if (file.text.find("\n#pragma once\n") == std::string::npos)
    findings.push_back(at(file, 1, "no #pragma once"));
  return findings;
}

// What is to be done is written down where everybody sees it, not in the code.
Findings notes_to_self(const SourceFile& file) {
  Findings findings;
  // Put together here, or this line would be its own finding.
  const std::regex pattern(
      "\\b(TO"
      "DO|FIX"
      "ME|XX"
      "X)\\b");
  for_each_line(file, [&](size_t number, const std::string& line) {
    if (std::regex_search(line, pattern))
      findings.push_back(at(file, number, "unfinished: " + line));
  });
  return findings;
}

// Which folders below src/ each may include, itself apart.
const std::map<std::string, std::set<std::string>>& may_include() {
  static const std::map<std::string, std::set<std::string>> allowed = {
      {"core", {}},
      {"fabric", {"core"}},
      {"codecs", {"core"}},
      {"collectives", {"core", "fabric", "codecs"}},
      {"optimizers", {"core"}},
      {"sparse", {"core", "fabric", "optimizers"}},
      {"data", {"core"}},
      {"models", {"core", "data"}},
      {"strategies",
       {"core", "fabric", "codecs", "collectives", "optimizers", "sparse", "data", "models"}},
      {"jobs",
       {"core", "fabric", "codecs", "collectives", "optimizers", "sparse", "data", "models",
        "strategies"}},
      {"testbed",
       {"core", "fabric", "codecs", "collectives", "optimizers", "sparse", "data", "models",
        "strategies", "jobs"}},
      {"cli",
       {"core", "fabric", "codecs", "collectives", "optimizers", "sparse", "data", "models",
        "strategies", "jobs", "testbed"}}};
  return allowed;
}

std::string folder_of(const std::string& path) {
  if (!path.starts_with("src/")) return "";
  const size_t end = path.find('/', 4);
  return end == std::string::npos ? "" : path.substr(4, end - 4);
}

// Calls `visit` with the line and the name of every include.
void for_each_include(const SourceFile& file,
                      const std::function<void(size_t, const std::string&)>& visit) {
  static const std::regex pattern("^\\s*#\\s*include\\s*[<\"]([^>\"]+)[>\"]");
  for_each_line(file, [&](size_t number, const std::string& line) {
    std::smatch match;
    if (std::regex_search(line, match, pattern)) visit(number, match[1]);
  });
}

Findings include_order(const SourceFile& file) {
  Findings findings;
  const std::string folder = folder_of(file.path);
  if (folder.empty()) return findings;
  const auto allowed = may_include().find(folder);
  if (allowed == may_include().end())
    return {at(file, 1, "src/" + folder + " has no place in the order of the folders")};
  for_each_include(file, [&](size_t number, const std::string& name) {
    const std::string other = name.substr(0, name.find('/'));
    if (other == folder || !may_include().contains(other) || other == name) return;
    if (!allowed->second.contains(other))
      findings.push_back(at(file, number, folder + " must not include " + name));
  });
  return findings;
}

// A fabric's inside is its own: strategies and collectives see nodes alone.
Findings fabric_insides(const SourceFile& file) {
  Findings findings;
  const std::set<std::string> outside = {"strategies", "collectives"};
  if (!outside.contains(folder_of(file.path))) return findings;
  for_each_include(file, [&](size_t number, const std::string& name) {
    if (name.starts_with("fabric/") && name.find('/', 7) != std::string::npos)
      findings.push_back(at(file, number, "must not know which fabric carries it: " + name));
  });
  return findings;
}

// Heavy libraries stay behind one door each.
Findings libraries(const SourceFile& file) {
  struct Library {
    const char* name;
    std::vector<std::string> prefixes, homes;
  };
  static const std::array<Library, 3> kLibraries = {
      {{"LibTorch", {"torch/", "ATen/", "c10/"}, {"src/models/torch/", "tests/optimizers/"}},
       {"SimGrid", {"simgrid/", "simgrid.h", "xbt/"}, {"src/fabric/virtual/"}},
       {"UCX", {"ucp/", "uct/", "ucs/"}, {"src/fabric/process/", "src/cli/doctor.cpp"}}}};
  Findings findings;
  for_each_include(file, [&](size_t number, const std::string& name) {
    for (const Library& library : kLibraries) {
      const auto starts = [](const std::string& text, const std::vector<std::string>& prefixes) {
        return std::any_of(prefixes.begin(), prefixes.end(),
                           [&](const std::string& prefix) { return text.starts_with(prefix); });
      };
      if (starts(name, library.prefixes) && !starts(file.path, library.homes))
        findings.push_back(at(file, number, std::string(library.name) + " does not belong here"));
    }
  });
  return findings;
}

Findings environment(const SourceFile& file) {
  const std::string folder = folder_of(file.path);
  if (folder.empty() || folder == "cli") return {};
  static const std::regex pattern("\\bgetenv\\b");
  return lines_with(file, pattern, "is for the command line; pass it in as a setting");
}

// Nodes are processes: forks copy no lock that a thread holds, and nothing is shared but what says
// so. Tests may have threads; how many the machine has may be asked.
Findings no_threads(const SourceFile& file) {
  if (folder_of(file.path).empty()) return {};
  static const std::regex pattern("\\bstd::(jthread|thread(?!::hardware_concurrency)|async)\\b");
  return lines_with(file, pattern, "is not for src/: what runs beside is a process");
}

// What would make the same strategy act differently for real and in virtual time.
Findings strategies_see_nodes_alone(const SourceFile& file) {
  const std::string folder = folder_of(file.path);
  if (folder != "strategies" && folder != "collectives") return {};
  static const std::regex pattern(
      "\\b(std::(j?thread|mutex|chrono|random_device|this_thread)|usleep|nanosleep|clock_gettime|"
      "gettimeofday|getenv|setenv|rand|fork|socket)\\b|<(thread|chrono|mutex|random|future)>");
  return lines_with(file, pattern, "is not for strategies: they see their node alone");
}

// A choice between words is an enum: text becomes a value where settings and records are read, or
// is asked for a value where records are kept as they were read (core/recorded_word.h).
Findings words_are_enums(const SourceFile& file) {
  if (folder_of(file.path).empty()) return {};
  // What others have laid down: parts of paths, the magic of a format, kinds of our own files, and
  // line separators of Unicode.
  static const std::regex pattern(
      "[!=]= \"(?!(ustar|\\.\\.?|\\.json|\\.tmp|comparison|bundle|\\\\xe2\\\\x80\\\\xa[89])\")"
      "|\" [!=]= ");
  return lines_with(file, pattern, "compares text; make it an enum with words (core/schema.h)");
}

}  // namespace

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = {
      {"Columns", columns},
      {"Length", length},
      {"Headers", headers},
      {"NotesToSelf", notes_to_self},
      {"IncludeOrder", include_order},
      {"FabricInsides", fabric_insides},
      {"Libraries", libraries},
      {"Environment", environment},
      {"NoThreads", no_threads},
      {"StrategiesSeeNodesAlone", strategies_see_nodes_alone},
      {"WordsAreEnums", words_are_enums},
  };
  return all;
}

}  // namespace tutti::tidy

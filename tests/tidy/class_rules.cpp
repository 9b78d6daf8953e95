#include "tests/tidy/class_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/tidy/classes.h"

namespace tutti::tidy {
namespace {

bool is_source(const SourceFile& file) {
  return file.path.starts_with("src/") &&
         (file.path.ends_with(".h") || file.path.ends_with(".cpp"));
}

// Calls `visit` with the namespaces and the class of each member that is defined outside of one:
// names at the beginning of a line, since everything else is indented.
template <class Visit>
void for_each_definition(const SourceFile& file, Visit visit) {
  static const std::regex opens("^namespace ([\\w:]+) \\{");
  static const std::regex defines("^[^\\s#}(][^(]*?\\b(\\w+)::~?\\w+\\(|^(\\w+)::~?\\w+\\(");
  std::istringstream lines(without_comments(file.text));
  std::string line, inside;
  while (std::getline(lines, line)) {
    if (line.empty() || line[0] == ' ' || line[0] == '}') continue;
    std::smatch match;
    if (std::regex_search(line, match, opens))
      inside = match[1];
    else if (std::regex_search(line, match, defines))
      visit(inside + "::" + (match[1].matched ? match[1] : match[2]).str());
  }
}

}  // namespace

Findings check_class_sizes(const std::vector<SourceFile>& files,
                           const std::vector<LargeClass>& large) {
  Findings findings;
  std::set<const LargeClass*> needed;
  for (const SourceFile& file : files) {
    if (!is_source(file)) continue;
    for (const ClassSize& size : classes_in(file.text)) {
      if (!size.has_hidden_state) continue;
      if (size.functions <= kMostFunctions && size.members <= kMostMembers) continue;
      const std::string what = fmt::format("{}:{}: {} has {} functions and {} data members",
                                           file.path, size.line, size.name, size.functions,
                                           size.members);
      const auto entry = std::find_if(large.begin(), large.end(), [&](const LargeClass& other) {
        return other.path == file.path && other.name == size.name;
      });
      if (entry == large.end()) {
        findings.push_back(fmt::format("{}; at most {} and {}: which concepts are in it?", what,
                                       kMostFunctions, kMostMembers));
        continue;
      }
      needed.insert(&*entry);
      if (size.functions != entry->functions || size.members != entry->members)
        findings.push_back(fmt::format("{}; the list says {} and {}, which may only become less",
                                       what, entry->functions, entry->members));
    }
  }
  for (const LargeClass& entry : large)
    if (!needed.contains(&entry))
      findings.push_back(fmt::format("{}: {} is not too large any more: take it off the list",
                                     entry.path, entry.name));
  return findings;
}

Findings check_one_file_per_class(const std::vector<SourceFile>& files,
                                  const std::vector<SpreadClass>& spread) {
  std::set<std::string> classes;
  for (const SourceFile& file : files)
    if (is_source(file))
      for (const ClassSize& size : classes_in(file.text)) classes.insert(size.name);
  std::map<std::string, std::set<std::string>> files_of;
  for (const SourceFile& file : files) {
    if (!is_source(file) || !file.path.ends_with(".cpp")) continue;
    for_each_definition(file, [&](const std::string& name) {
      if (classes.contains(name.substr(name.rfind(':') + 1))) files_of[name].insert(file.path);
    });
  }
  Findings findings;
  std::set<std::string> known;
  for (const SpreadClass& entry : spread) {
    known.insert(entry.name);
    if (!files_of.contains(entry.name) || files_of[entry.name].size() < 2)
      findings.push_back(entry.name + " is in one file: take it off the list");
  }
  for (const auto& [name, paths] : files_of) {
    if (paths.size() < 2 || known.contains(name)) continue;
    std::string list;
    for (const std::string& path : paths) list += (list.empty() ? "" : " and ") + path;
    findings.push_back(name + " is one class in " + list + ": split the concept, not the file");
  }
  return findings;
}

}  // namespace tutti::tidy

#include "jobs/setting_hints.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <vector>

#include "jobs/job.h"

namespace tutti {
namespace {

// Every setting by its whole name, with the choices it needs.
const std::map<std::string, std::string>& needs_by_name() {
  static const std::map<std::string, std::string> all = [] {
    std::map<std::string, std::string> result;
    for (const Setting& setting : job_settings())
      result[setting.table.empty() ? setting.key : setting.table + "." + setting.key] =
          setting.needs;
    return result;
  }();
  return all;
}

// As the settings are documented: "compare.cluster.faults[1].node" is "cluster.faults.node".
std::string documented_name(std::string name) {
  constexpr std::string_view kEntry = "compare.";
  if (name.starts_with(kEntry)) name.erase(0, kEntry.size());
  std::string result;
  bool inside = false;
  for (const char c : name) {
    inside = c == '[' || inside;
    if (!inside) result += c;
    if (c == ']') inside = false;
  }
  return result;
}

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

// The settings of all tables that are called `word`: of those, the ones in the fewest tables.
std::vector<std::string> called(const std::string& word) {
  std::vector<std::string> found;
  const auto depth = [](const std::string& name) { return std::ranges::count(name, '.'); };
  for (const auto& [name, needs] : needs_by_name()) {
    if (last_part(name) != word) continue;
    if (!found.empty() && depth(name) > depth(found.front())) continue;
    if (!found.empty() && depth(name) < depth(found.front())) found.clear();
    found.push_back(name);
  }
  return found;
}

std::string suggestion(const std::vector<std::string>& names) {
  const std::string& needs = needs_by_name().at(names.front());
  return fmt::format("did you mean '{}'?{}", fmt::join(names, "' or '"),
                     names.size() > 1 || needs.empty() ? "" : " It needs " + needs);
}

// The nearest of all settings, for a word that nobody knows.
std::string nearest_anywhere(const std::string& word) {
  std::set<std::string> words;
  for (const auto& [name, needs] : needs_by_name()) words.insert(last_part(name));
  return nearest(word, {words.begin(), words.end()});
}

}  // namespace

std::string hint_for(const std::string& prefix, const std::string& key,
                     const std::set<std::string>& known) {
  const std::string name = documented_name(prefix + key);
  const auto documented = needs_by_name().find(name);
  if (documented != needs_by_name().end() && !documented->second.empty())
    return "it needs " + documented->second;
  const bool outside = name == key;  // of all tables, where only tables are near
  std::vector<std::string> elsewhere = called(key);
  if (outside && !elsewhere.empty()) return suggestion(elsewhere);
  const std::string near = nearest(key, {known.begin(), known.end()});
  if (!near.empty()) return fmt::format("did you mean '{}'?", near);
  if (elsewhere.empty()) elsewhere = called(nearest_anywhere(key));
  if (!elsewhere.empty()) return suggestion(elsewhere);
  return fmt::format("known are {}", fmt::join(known, ", "));
}

}  // namespace tutti

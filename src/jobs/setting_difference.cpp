#include "jobs/setting_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>
#include <utility>

namespace tutti {
namespace {

constexpr size_t kMostNamed = 12;

using KeyAndValue = std::pair<std::string, std::string>;

// The settings of a resolved job, as texts: "task.model.kind" and "\"lenet\"".
std::vector<KeyAndValue> settings_in(Job job) {
  job.compare.clear();
  std::vector<KeyAndValue> settings;
  std::istringstream lines(resolved_toml(job));
  std::string table;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("[") && line.ends_with("]") && line.find('=') == std::string::npos)
      table = line.substr(1, line.size() - 2) + ".";
    else if (const size_t sign = line.find(" = "); sign != std::string::npos)
      settings.emplace_back(table + line.substr(0, sign), line.substr(sign + 3));
  }
  return settings;
}

bool is_compared(const std::string& key) {
  return key.starts_with("task.") || key.starts_with("optimizer.") || key.starts_with("cluster.");
}

// When quality is measured and what it is held against change no parameter.
bool is_of_learning(const std::string& key) {
  constexpr std::array<std::string_view, 2> kOfMeasuring = {"task.eval_every", "task.target"};
  return !key.starts_with("cluster.") &&
         std::find(kOfMeasuring.begin(), kOfMeasuring.end(), key) == kOfMeasuring.end();
}

}  // namespace

std::vector<SettingChange> changed_settings(const Job& before, const Job& after) {
  const std::vector<KeyAndValue> old = settings_in(before);
  std::vector<SettingChange> changes;
  for (const auto& [key, value] : settings_in(after)) {
    const auto same_key = [&key = key](const KeyAndValue& setting) { return setting.first == key; };
    const auto found = std::find_if(old.begin(), old.end(), same_key);
    if (!is_compared(key) || found == old.end() || found->second == value) continue;
    changes.push_back({key, fmt::format("{} -> {}", found->second, value), is_of_learning(key)});
  }
  return changes;
}

std::string in_words(const std::vector<SettingChange>& changes) {
  std::string text;
  for (size_t i = 0; i < std::min(changes.size(), kMostNamed); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : "; ", changes[i].key, changes[i].text);
  if (changes.size() > kMostNamed)
    text += fmt::format("; and {} more", changes.size() - kMostNamed);
  return text;
}

}  // namespace tutti

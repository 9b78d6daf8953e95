#include "jobs/setting_hints.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
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

// Suggests `names` to a user who misspelt a key of the table `prefix`.
std::string suggestion(const std::string& prefix, const std::vector<std::string>& names) {
  const std::string& needs = needs_by_name().at(names.front());
  std::string text = fmt::format("did you mean '{}'?", fmt::join(names, "' or '"));
  if (names.size() > 1) return text;
  const std::string table = names.front().substr(0, names.front().rfind('.') + 1);
  if (table != prefix)
    text += fmt::format(" It belongs to [{}]", table.substr(0, table.size() - 1));
  if (needs.empty()) return text;
  return text + (table != prefix ? ", and needs " : " It needs ") + needs;
}

// Returns the settings of the table `prefix`, under any choices, that are spelt nearly like `word`.
// An empty prefix stands for all tables.
std::vector<std::string> spelt_like(const std::string& prefix, const std::string& word) {
  std::set<std::string> words;
  for (const auto& [name, needs] : needs_by_name())
    if (prefix.empty() || name == prefix + last_part(name)) words.insert(last_part(name));
  const std::string near = nearest(word, {words.begin(), words.end()});
  if (near.empty()) return {};
  return prefix.empty() ? called(near) : std::vector{prefix + near};
}

// Maps names that other systems and papers use to ours. Those of strategies are in the catalog.
std::map<std::string, std::string> make_other_names() {
  std::map<std::string, std::string> names = {
      {"nag", "nesterov"},       {"sgdm", "momentum"},   {"simulated", "virtual"},
      {"simulation", "virtual"}, {"simgrid", "virtual"}, {"local", "process"},
      {"ucx", "process"},
  };
  for (const StrategyEntry& entry : strategy_catalog())
    for (const std::string_view name : entry.also_called) names.emplace(name, entry.name);
  return names;
}

const std::map<std::string, std::string>& other_names() {
  static const std::map<std::string, std::string> names = make_other_names();
  return names;
}

// Maps keys that other systems and papers use to ours.
const std::map<std::string, std::string>& other_keys() {
  static const std::map<std::string, std::string> keys = {
      {"rate", "lr"},
      {"learning_rate", "lr"},
      {"eta", "lr"},
      {"batch", "global_batch"},
      {"batch_size", "global_batch"},
      {"nodes", "workers"},
      {"n", "workers"},
      {"dataset", "data"},
      {"num_epochs", "epochs"},
  };
  return keys;
}

// Maps settings to those that take their place when both would say the same thing.
const std::map<std::string, std::string>& replaced_by() {
  static const std::map<std::string, std::string> settings = {{"local_epochs", "local_steps"}};
  return settings;
}

// The name of a variant is not a kind: the hint names the kind and its settings.
std::string variant_hint(const std::string& value, const std::vector<std::string_view>& allowed) {
  for (const StrategyEntry& entry : strategy_catalog()) {
    if (std::find(allowed.begin(), allowed.end(), entry.name) == allowed.end()) continue;
    for (const Variant& variant : entry.variants()) {
      if (variant.name != value) continue;
      std::string text = fmt::format("did you mean '{}'", entry.name);
      if (!variant.settings.empty())
        text += fmt::format(" with strategy.{}", fmt::join(variant.settings, ", strategy."));
      return text + "?";
    }
  }
  return "";
}

}  // namespace

std::string choice_hint(const std::string& value, const std::vector<std::string_view>& allowed) {
  std::string plain = value;
  std::ranges::transform(plain, plain.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto other = other_names().find(plain);
  if (other != other_names().end() &&
      std::find(allowed.begin(), allowed.end(), other->second) != allowed.end())
    return fmt::format("did you mean '{}'?", other->second);
  const std::string variant = variant_hint(plain, allowed);
  if (!variant.empty()) return variant;
  std::string near = nearest(value, allowed);
  for (const std::string_view name : allowed)  // a part of a name: mnist
    if (near.empty() && plain.size() >= 3 && name.find(plain) != std::string_view::npos)
      near = name;
  return near.empty() ? "" : fmt::format("did you mean '{}'?", near);
}

bool depends_on_choice(const std::string& name) {
  const auto documented = needs_by_name().find(documented_name(name));
  return documented != needs_by_name().end() && !documented->second.empty();
}

std::string hint_for(const std::string& prefix, const std::string& key,
                     const std::set<std::string>& known) {
  if (const auto other = other_keys().find(key); other != other_keys().end())
    if (known.contains(other->second)) return fmt::format("did you mean '{}'?", other->second);
  if (const auto other = replaced_by().find(key); other != replaced_by().end())
    if (known.contains(other->second))
      return fmt::format("{}{} takes its place; leave one of the two out", prefix, other->second);
  const std::string name = documented_name(prefix + key);
  const auto documented = needs_by_name().find(name);
  if (documented != needs_by_name().end() && !documented->second.empty())
    return "it needs " + documented->second;
  const bool outside = name == key;  // of all tables, where only tables are near
  std::vector<std::string> elsewhere = called(key);
  const std::string table = documented_name(prefix);
  if (outside && !elsewhere.empty()) return suggestion(table, elsewhere);
  const std::string near = nearest(key, {known.begin(), known.end()});
  if (!near.empty()) return fmt::format("did you mean '{}'?", near);
  if (elsewhere.empty()) elsewhere = spelt_like(table, key);
  if (!elsewhere.empty()) return suggestion(table, elsewhere);
  return fmt::format("known are {}", fmt::join(known, ", "));
}

}  // namespace tutti

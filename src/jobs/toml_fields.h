// Reads the fields that components visit from a TOML table. Every value is looked up by a visited
// field; what is left over afterwards is an unknown key, refused with what was probably meant.
#pragma once

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/schema.h"
#include "jobs/setting_hints.h"

namespace tutti {

inline const char* type_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::string:
      return "text";
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a number";
    case toml::node_type::boolean:
      return "true or false";
    default:
      return "a date";
  }
}

// Where settings come from, and what is known about each.
struct TomlOrigin {
  std::string file;
  std::map<std::string, std::string> places;  // where each was given
  std::map<std::string, std::string> bare;    // of the command line: the value as it was typed
  std::set<std::string> changed;              // of those: where the file has another value
  std::vector<std::string> dropped;           // messages about settings that lost their meaning
};

// "job.toml:12"; what was set on top of a file has no line.
inline std::string toml_place(const toml::node& node, const std::string& file) {
  const auto line = node.source().begin.line;
  const auto& path = node.source().path;  // of a cluster's own file
  return line ? fmt::format("{}:{}", path ? *path : file, line) : "command line";
}

// Returns a value as a job file writes it: 0.9, "ring", [1, 2].
inline std::string toml_text(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return fmt::format("\"{}\"", *text);
  if (const auto number = node.value_exact<double>()) return fmt::format("{}", *number);
  std::string inside;
  const auto add = [&](const std::string& one) { inside += (inside.empty() ? "" : ", ") + one; };
  if (const toml::array* list = node.as_array()) {
    for (const toml::node& one : *list) add(toml_text(one));
    return fmt::format("[{}]", inside);
  }
  if (const toml::table* table = node.as_table()) {
    for (const auto& [key, value] : *table)
      add(fmt::format("{} = {}", key.str(), toml_text(value)));
    return fmt::format("{{ {} }}", inside);
  }
  std::ostringstream text;
  node.visit([&](const auto& value) { text << value; });
  return text.str();
}

// Says how to write the whole number that is nearest to one with a point or an exponent.
inline std::string whole_instead_of(double value) {
  if (!std::isfinite(value) || std::abs(value) > 1e15) return "without a point or an exponent";
  if (std::floor(value) != value)
    return fmt::format("e.g. {:.0f} or {:.0f}", std::floor(value), std::ceil(value));
  return fmt::format("written as {:.0f}, without a point or an exponent", value);
}

// An error that says where: those of components do not, they know their settings' names alone.
class PlacedError : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

class TomlReader : public Visitor {
 public:
  TomlReader(const toml::table& table, TomlOrigin& origin, std::string prefix)
      : table_(table), origin_(origin), prefix_(std::move(prefix)) {}

  void field(const char* key, bool& value, const char*) override {
    if (const toml::node* node = find(key)) value = as<bool>(key, *node, "true or false");
  }
  void field(const char* key, int64_t& value, Bounds bounds, const char*) override {
    if (const toml::node* node = find(key)) value = integer(key, *node, bounds);
  }
  void field(const char* key, double& value, Bounds bounds, const char*) override {
    if (const toml::node* node = find(key)) value = number(key, *node, bounds);
  }
  void field(const char* key, std::string& value, const char*) override {
    if (const toml::node* node = find(key)) value = text(key, *node);
  }
  void field(const char* key, std::vector<int64_t>& value, Bounds bounds, const char*) override {
    read_list(key, value, [&](const toml::node& node) { return integer(key, node, bounds); });
  }
  void field(const char* key, std::vector<double>& value, Bounds bounds, const char*) override {
    read_list(key, value, [&](const toml::node& node) { return number(key, node, bounds); });
  }

  void quantity(const char* key, double& value, Unit unit, const char*) override {
    const toml::node* node = find(key);
    if (!node) return;
    if (const auto text = node->value_exact<std::string>()) {
      try {
        value = parse_quantity(*text, unit);
      } catch (const ConfigError& error) {
        fail(key, *node, error.what());
      }
    } else {
      value = number(key, *node, kNotNegative);
    }
    if (!std::isfinite(value)) fail(key, *node, "is too large for a number; write a smaller one");
    if (value < 0) fail(key, *node, "must not be negative");
  }

  void division(const char* key, Division& value, const char*) override {
    const toml::node* node = find(key);
    if (!node) return;
    value = {};
    if (node->is_array()) {
      read_list(key, value.places,
                [&](const toml::node& place) { return integer(key, place, kAtLeastOne); });
      if (value.places.empty()) fail(key, *node, "= [] names no place; write a number of parts");
    } else if (const auto text = node->value_exact<std::string>()) {
      check_choice(key, *node, *text, {"auto"});
      value.automatic = true;
    } else if (node->is_integer()) {
      value.parts = integer(key, *node, kNotNegative);
    } else {
      fail(key, *node,
           fmt::format("must be a whole number, a list of them or \"auto\", not {}",
                       type_name(*node)));
    }
  }

  void choice(const char* key, std::string& value, const std::vector<std::string_view>& allowed,
              const char*) override {
    const toml::node* node = find(key);
    // An entry of a comparison may inherit its kind from the job.
    if (changed_.empty() && origin_.changed.contains(prefix_ + key) && !(node && is_of_file(key)))
      changed_ = node ? text(key, *node) : value;
    if (!node) return;
    const std::string chosen = text(key, *node);
    if (!changed_.empty() && !contains(allowed, chosen) && is_of_file(key)) return drop(key, *node);
    value = chosen;
    check_choice(key, *node, value, allowed);
  }

  void table(const char* key, const std::function<void(Visitor&)>& inside, const char*) override {
    const toml::node* node = find(key);
    if (!node) return visit_table(toml::table{}, key, inside);
    if (!node->is_table())
      fail(key, *node, fmt::format("must be a table, not {}", type_name(*node)));
    visit_table(*node->as_table(), key, inside);
  }

  void component(const char* key, std::string& kind, const std::vector<std::string_view>& allowed,
                 const std::function<void(Visitor&)>& inside, const char* help) override {
    const toml::node* node = find(key);
    if (!node) return visit_table(toml::table{}, key, inside);
    if (const auto name = node->value_exact<std::string>()) {
      kind = *name;
      check_choice(key, *node, kind, allowed);
      return visit_table(toml::table{}, key, inside);
    }
    if (!node->is_table())
      fail(key, *node,
           fmt::format("must be a name or a table with a kind, not {}", type_name(*node)));
    visit_table(*node->as_table(), key, [&](Visitor& visitor) {
      visitor.choice("kind", kind, allowed, help);
      inside(visitor);
    });
  }

  void tables(const char* key, size_t, const std::function<void(Visitor&, size_t)>& inside,
              const char*) override {
    const toml::node* node = find(key);
    if (!node) return;
    const toml::array* list = node->as_array();
    if (!list) fail(key, *node, fmt::format("must be a list of tables, not {}", type_name(*node)));
    for (size_t i = 0; i < list->size(); ++i) {
      const toml::node& element = *list->get(i);
      if (!element.is_table()) fail(key, element, "must be a list of tables");
      visit_table(*element.as_table(), fmt::format("{}[{}]", key, i),
                  [&](Visitor& visitor) { inside(visitor, i); });
    }
  }

  // The value of a known key, or null when it is not given.
  const toml::node* find(const char* key) {
    known_.insert(key);
    const toml::node* node = table_.get(key);
    if (node) origin_.places[prefix_ + key] = toml_place(*node, origin_.file);
    return node;
  }

  // Settings of the old kind are dropped, not refused, when the command line changes the kind: the
  // user need not know what else the file says.
  void refuse_unknown() const {
    for (const auto& [key, node] : table_) {
      if (known_.count(std::string(key.str()))) continue;
      const std::string name(key.str());
      if (!changed_.empty() && is_of_file(name) && depends_on_choice(prefix_ + name))
        drop(name, node);
      else
        fail(name, node, "is not a setting here; " + hint_for(prefix_, name, known_));
    }
  }

 private:
  static bool contains(const std::vector<std::string_view>& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  }

  bool is_of_file(const std::string& key) const { return !origin_.bare.contains(prefix_ + key); }

  void drop(const std::string& key, const toml::node& node) const {
    origin_.places.erase(prefix_ + key);
    origin_.dropped.push_back(fmt::format("{}: {}{} = {} is not a setting of {} and was dropped",
                                          toml_place(node, origin_.file), prefix_, key,
                                          toml_text(node), changed_));
  }

  [[noreturn]] void fail(const std::string& key, const toml::node& node,
                         const std::string& problem) const {
    const std::string path = prefix_ + key;
    throw PlacedError(path,
                      fmt::format("{}: {} {}", toml_place(node, origin_.file), path, problem));
  }

  template <class T>
  T as(const char* key, const toml::node& node, const char* wanted) const {
    const auto value = node.value_exact<T>();
    if (!value) fail(key, node, fmt::format("must be {}, not {}", wanted, type_name(node)));
    return *value;
  }

  // On a command line nobody quotes: --set name=2024 is a text where a text is wanted.
  std::string text(const char* key, const toml::node& node) const {
    const auto typed = origin_.bare.find(prefix_ + key);
    if (node.is_value() && !node.is_string() && typed != origin_.bare.end()) return typed->second;
    return as<std::string>(key, node, "text");
  }

  void check_bounds(const char* key, const toml::node& node, double value, Bounds bounds) const {
    if (!std::isfinite(value)) fail(key, node, "must be a finite number");
    if (value < bounds.least)
      fail(key, node,
           bounds.least == kPositive.least
               ? fmt::format("= {} must be more than 0", value)
               : fmt::format("= {} must be at least {}", value, bounds.least));
    if (value > bounds.most)
      fail(key, node, fmt::format("= {} must be at most {}", value, bounds.most));
  }

  int64_t integer(const char* key, const toml::node& node, Bounds bounds) const {
    if (node.is_floating_point())
      fail(key, node,
           fmt::format("= {} must be a whole number, {}", toml_text(node),
                       whole_instead_of(*node.value_exact<double>())));
    const auto value = as<int64_t>(key, node, "a whole number");
    check_bounds(key, node, static_cast<double>(value), bounds);
    return value;
  }

  double number(const char* key, const toml::node& node, Bounds bounds) const {
    if (!node.is_number())
      fail(key, node, fmt::format("must be a number, not {}", type_name(node)));
    // Not node.value<double>(): it is empty for a whole number that no double equals.
    const double value = node.is_integer() ? static_cast<double>(node.as_integer()->get())
                                           : node.as_floating_point()->get();
    check_bounds(key, node, value, bounds);
    return value;
  }

  template <class T, class Read>
  void read_list(const char* key, std::vector<T>& value, const Read& read) {
    const toml::node* node = find(key);
    if (!node) return;
    const toml::array* list = node->as_array();
    if (!list) fail(key, *node, fmt::format("must be a list, not {}", type_name(*node)));
    value.clear();
    for (const toml::node& element : *list) value.push_back(read(element));
  }

  void check_choice(const char* key, const toml::node& node, const std::string& value,
                    const std::vector<std::string_view>& allowed) const {
    if (contains(allowed, value)) return;
    std::string all;
    for (std::string_view name : allowed) all += (all.empty() ? "" : ", ") + std::string(name);
    const std::string suggestion = choice_hint(value, allowed);
    fail(key, node,
         fmt::format("= \"{}\" is unknown; {}{}use one of {}", value, suggestion,
                     suggestion.empty() ? "" : " ", all));
  }

  void visit_table(const toml::table& table, const std::string& key,
                   const std::function<void(Visitor&)>& inside) const {
    TomlReader reader(table, origin_, prefix_ + key + ".");
    inside(reader);
    reader.refuse_unknown();
  }

  const toml::table& table_;
  TomlOrigin& origin_;
  std::string prefix_;
  std::set<std::string> known_;
  std::string changed_;  // the new value of the first choice that the command line changed
};

}  // namespace tutti

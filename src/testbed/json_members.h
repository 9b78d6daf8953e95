// Members of JSON objects that may be absent or null, without copies and without throwing.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace tutti {

// Null when there is none.
inline const nlohmann::json& member(const nlohmann::json& object, const std::string& key) {
  static const nlohmann::json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(key);
  return found == object.end() ? kNone : *found;
}

// An empty list when there is none.
inline const nlohmann::json& list_member(const nlohmann::json& object, const std::string& key) {
  static const nlohmann::json kEmpty = nlohmann::json::array();
  const nlohmann::json& found = member(object, key);
  return found.is_array() ? found : kEmpty;
}

// NaN when there is none.
inline double number_of(const nlohmann::json& value) {
  return value.is_number() ? value.get<double>() : NAN;
}

inline std::string text_of(const nlohmann::json& value, const std::string& otherwise) {
  return value.is_string() ? value.get<std::string>() : otherwise;
}

}  // namespace tutti

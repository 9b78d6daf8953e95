// Which keys a JSON object must have, and of which type each is.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace tutti {

// Checks that `value` has each key ("time.total_s") with its type: s text, n number, i whole
// number, b truth, o object, a list; a question mark behind it allows null.
inline void expect_types(const nlohmann::json& value,
                         const std::vector<std::pair<std::string, std::string>>& keys) {
  for (const auto& [key, type] : keys) {
    std::string pointer = "/" + key;
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    const nlohmann::json::json_pointer where(pointer);
    if (!value.contains(where)) {
      ADD_FAILURE() << "no " << key << " in " << value.dump(2);
      continue;
    }
    const nlohmann::json& found = value[where];
    const bool right =
        (type[0] == 's' && found.is_string()) || (type[0] == 'n' && found.is_number()) ||
        (type[0] == 'i' && found.is_number_integer()) || (type[0] == 'b' && found.is_boolean()) ||
        (type[0] == 'o' && found.is_object()) || (type[0] == 'a' && found.is_array()) ||
        (type.size() > 1 && found.is_null());
    EXPECT_TRUE(right) << key << " = " << found.dump() << " is not of type " << type;
  }
}

}  // namespace tutti

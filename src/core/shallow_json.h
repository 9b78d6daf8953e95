// JSON from files that anybody may have changed. A value that is nested without end would overflow
// the stack of whoever copies or prints it, so nothing deeper than our own files is taken.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace tutti {

// Discarded (is_discarded()) where the text is not JSON; values that lie too deep are left out.
inline nlohmann::json parse_shallow_json(std::string_view text) {
  constexpr int kMostLevels = 64;
  return nlohmann::json::parse(
      text,
      [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
        return depth <= kMostLevels;
      },
      false);
}

}  // namespace tutti
